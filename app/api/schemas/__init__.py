"""Request and response bodies, one file per route file; never imported outside `api`."""
