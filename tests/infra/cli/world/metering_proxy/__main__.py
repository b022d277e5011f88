"""Stands in for the metering_proxy in tests of `alcove run`."""

from fake_world import main

main("metering_proxy")
