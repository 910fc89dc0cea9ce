"""THE DOOR: everything that knows HTTP, and no logic of its own. Read `router.py` first."""
