"""Statements as drivers take them fastest: values by their places, not by names. Each is rewritten once."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

Values = Mapping[str, Any]
Picked = tuple[Any, ...]
_NAMED = re.compile(r"(?<!:):([a-z]\w*)")


@lru_cache(maxsize=256)
def with_marks(sql: str) -> tuple[str, Callable[[Values], Picked]]:
    """`:name` as SQLite's `?`, and what picks the values in their order."""
    return _NAMED.sub("?", sql), _picker(_NAMED.findall(sql))


@lru_cache(maxsize=256)
def with_numbers(sql: str) -> tuple[str, Callable[[Values], Picked]]:
    """`:name` as PostgreSQL's `$1`, the same number for the same name."""
    names = list(dict.fromkeys(_NAMED.findall(sql)))
    numbers = {name: f"${n}" for n, name in enumerate(names, 1)}
    return _NAMED.sub(lambda found: numbers[found[1]], sql), _picker(names)


def _picker(names: list[str]) -> Callable[[Values], Picked]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
