"""Stands in for the gateway in tests of `alcove run`."""
