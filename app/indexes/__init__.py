"""Find candidates fast; all of it derives from the store and can be deleted. Read `port.py`, then `sync.py`."""
