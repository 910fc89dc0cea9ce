"""Turn what a caller sends into chunks with vectors in the store; nothing here answers. Read `ingest.py` first."""
