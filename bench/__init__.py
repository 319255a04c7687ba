"""What `make bench` runs: ratios against peers, both sides in one run, in alternation."""
