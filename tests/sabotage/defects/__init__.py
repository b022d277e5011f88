"""The defects, a file a room."""

from tests.sabotage.defects.kit import KIT
from tests.sabotage.defects.spawner import SPAWNER

DEFECTS = [*KIT, *SPAWNER]
