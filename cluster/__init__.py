"""A real HDFS and YARN on this machine's loopback, for trying and testing: what `make cluster-up` starts."""
