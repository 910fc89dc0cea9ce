"""The embedded engine: tantivy for keywords, faiss for vectors."""
