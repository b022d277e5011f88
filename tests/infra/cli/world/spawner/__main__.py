"""Stands in for the spawner in tests of `alcove run`."""

from fake_world import main

main("spawner")
