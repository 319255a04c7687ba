"""From raw files to packed rows: sources, readers, ingest, pack."""
