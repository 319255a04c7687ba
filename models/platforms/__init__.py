"""One file per platform. None is named like a library that it imports."""
