"""Stands in for the gateway in tests of `alcove run`."""

from fake_world import main

main("gateway")
