"""Starts, watches, puts to sleep and wakes the instances of tenants. Sole holder of the Docker socket."""
