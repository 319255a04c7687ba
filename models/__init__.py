"""What is trained and how it is timed; knows nothing of Luigi."""
