"""The commands that need more than a few lines, each in a room of its own, and what all commands have in common."""
