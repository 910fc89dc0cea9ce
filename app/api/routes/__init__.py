"""One file per group of operations."""
