"""One file per way to turn text into vectors."""
