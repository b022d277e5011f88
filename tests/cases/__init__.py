"""Which test holds which public case: one row a case, in a file an area."""
