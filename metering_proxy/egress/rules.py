"""What a plan says about ways out: its table `[plan.egress]`. A plan without one has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metering_proxy.egress.hosts import spelled

_PORTS = (80, 443)


@dataclass(frozen=True, slots=True)
class Rules:
    """`at_once`: tunnels and calls of a tenant at the same time; `bytes_day`: both directions together;
    `ways_day`: tunnels and calls begun in a day. None: no limit.

    `ports`, `allow` and `deny` are about tunnels; a name stands for itself and all below it. An empty `allow`
    allows every public host.
    """

    at_once: int = 8
    bytes_day: int | None = None
    ways_day: int | None = None
    ports: frozenset[int] = frozenset(_PORTS)
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()


def rules(table: Mapping[str, Any]) -> Rules:
    """The rules in a plan's table. Raises ValueError, naming what is wrong."""
    if unknown := table.keys() - set(Rules.__dataclass_fields__):
        raise ValueError(f"egress: unknown {', '.join(sorted(unknown))}")
    return Rules(
        at_once=_count(table.get("at_once", 8), most=1_000),
        bytes_day=None if "bytes_day" not in table else _count(table["bytes_day"]),
        ways_day=None if "ways_day" not in table else _count(table["ways_day"]),
        ports=frozenset(_count(port, most=65_535) for port in table.get("ports", _PORTS)),
        allow=_names(table.get("allow", ())),
        deny=_names(table.get("deny", ())),
    )


def _count(value: Any, most: int = 2**53) -> int:
    if type(value) is not int or not 0 < value <= most:
        raise ValueError(f"egress: {value!r} is not a whole number from 1 to {most}")
    return value


def _names(value: Any) -> frozenset[str]:
    """Hosts in their one spelling. An entry that no host is ever equal to is refused: it would change nothing."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("egress: allow and deny are lists of host names")
    return frozenset(_name(item) for item in value)


def _name(item: str) -> str:
    bare = f"[{item}]" if item.count(":") > 1 and not item.startswith("[") else item
    found = spelled(bare.removeprefix("."))
    if found is None:
        raise ValueError(
            f"egress: {item!r} is no host such as example.org, which stands for all below it too:"
            " no *, port, path or block of addresses, and other alphabets as xn--…"
        )
    return found[0]
