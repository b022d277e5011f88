"""The rooms' own surroundings, for the real side of each contract."""

from tests.spawner.conftest import spawner_database

__all__ = ["spawner_database"]
