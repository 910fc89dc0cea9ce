"""Know which collections, keys and jobs exist; nothing here opens a collection's documents. Read `tables.py` first."""
