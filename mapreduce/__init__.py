"""The MapReduce jobs, a page each, and what they share: what a valid row is."""
