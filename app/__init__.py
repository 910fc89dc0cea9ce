"""Footnote: documents in, passages and cited answers out. Read `main.py` or `bootstrap.py` first."""
