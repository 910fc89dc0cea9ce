"""Find and order the passages that answer a query; nothing here writes. Read `search.py` first."""
