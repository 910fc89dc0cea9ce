"""One file per way to score how well passages answer a query."""
