"""Which members a request may have: the lists of members.toml, and the refusal of what is on none of them.

A member that the meter does not know may name another model, begin a search or bring input from elsewhere, past
allow-list, hold and price. So it is refused, and not deleted: what is sent on is what was written. The lists hold
names as they are written: another case of a name, which some servers read as the same, is on none.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from infra.kit.errors import AlcoveError
from metering_proxy.wires.document import Document

_FILE = Path(__file__).parents[1] / "members.toml"
_SNAKE = re.compile(r"_([a-z])")
_IN_TWO_WAYS = ("gemini", "gemini_config")


@cache
def known() -> Mapping[str, frozenset[str]]:
    """The members that are known, by wire."""
    lists = tomllib.loads(_FILE.read_text())
    return {
        wire: frozenset(_written(wire, [*row["documented"], *row["extras"]]))
        for wire, row in lists.items()
    }


def _written(wire: str, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        yield name
        if wire in _IN_TWO_WAYS:
            yield _SNAKE.sub(lambda found: found.group(1).upper(), name)


def strange(document: Document, wire: str) -> tuple[str, ...]:
    """The members that a wire's list does not know; null says nothing."""
    if document.members.keys() <= known()[wire]:
        return ()
    names = others(document.members, wire)
    return tuple(name for name in names if document.members[name].value is not None)


def others(names: Collection[str], wire: str) -> tuple[str, ...]:
    """Those of some names that a wire's list does not know."""
    there = known()[wire]
    return tuple(name for name in names if name not in there)


def check_case(names: Iterable[str], counts: frozenset[str], folded: frozenset[str]) -> None:
    """Raises `invalid` for another case of a name that counts: some servers read the two as one.

    `folded`: the names of `counts` as `str.casefold` writes them.
    """
    for name in names:
        if name not in counts and name.casefold() in folded:
            raise not_metered(name)


def not_metered(name: str) -> AlcoveError:
    """The refusal of a member."""
    told = name[:64]
    return AlcoveError(
        "invalid",
        f"{told} cannot be metered here: leave it out",
        reason="member_not_metered",
        field=told,
    )
