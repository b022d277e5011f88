"""Stands in for the spawner in tests of `alcove run`."""
