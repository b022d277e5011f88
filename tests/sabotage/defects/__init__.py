"""The defects, a file a room."""

from tests.sabotage.defects.kit import KIT

DEFECTS = [*KIT]
