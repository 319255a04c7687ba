"""What YARN is asked: where its ResourceManager is, what it has and allows, and what becomes of applications."""
