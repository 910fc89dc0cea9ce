"""Call models, embedded or over HTTP; nothing here knows of documents. Read `port.py` first."""
