"""One file per way to generate text."""
