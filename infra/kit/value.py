"""LIGHT. Values: small objects that nobody changes, made many times a second.

A frozen dataclass is checked as it is made, member by member, which makes it four times as dear as a plain one.
These are frozen for the type checker, which sees every line of this house, and plain when they run.
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def value(cls: type[_T]) -> type[_T]:
    """A dataclass with slots and a hash whose members are set once, when it is made."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
