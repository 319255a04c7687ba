"""What happens when: the graph, its settings and the command line."""
