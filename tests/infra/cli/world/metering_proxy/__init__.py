"""Stands in for the metering_proxy in tests of `alcove run`."""
