"""Where things are kept: one protocol over a local directory or HDFS, published atomically."""
