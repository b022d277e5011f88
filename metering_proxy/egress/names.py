"""Which hosts may be asked for, judged by their name and port alone; addresses are addresses.py's matter."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from infra.kit.errors import AlcoveError
from metering_proxy.egress.addresses import IPAddress, literal
from metering_proxy.egress.rules import Rules

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# WHATWG URL, 3.5: a host that ends so is a number to some resolver (2130706433, 0x7f.1, 0177.0.0.1).
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")
# Names that are no business of the public DNS: RFC 6761, 6762, 7686, 8375, 9476, and ICANN's `internal`.
_NEVER = ("localhost", "local", "internal", "arpa", "onion", "alt", "invalid", "test")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a caller wants to go. `host`: in small letters, without a dot at its end or brackets around it."""

    host: str
    port: int
    address: IPAddress | None


def parse(authority: str) -> Target:
    """The target that `host:port` names. Raises `invalid` (`egress_odd_host`) for any doubtful spelling."""
    host, _, port = authority.rpartition(":")
    bracketed = host.startswith("[")
    host = host.removeprefix("[").removesuffix("]").lower()
    if not bracketed:
        host = host.removesuffix(".")
    address = literal(host)
    if address is not None and (address.version == 6) == bracketed:
        return Target(host, int(port), address)
    labels = host.split(".")
    if (
        bracketed
        or len(host) > 253
        or not all(_LABEL.fullmatch(label) for label in labels)
        or _NUMBER.fullmatch(labels[-1])
    ):
        raise AlcoveError(
            "invalid",
            "a host is a name, or an address in its usual spelling",
            reason="egress_odd_host",
        )
    return Target(host, int(port), None)


def check(target: Target, rules: Rules, providers: Collection[str]) -> None:
    """Raises `forbidden` unless the plan lets its tenants ask for `target`.

    Reasons: `egress_port`, `egress_private_name`, `egress_provider` (models are called through the meter),
    `egress_denied`, `egress_not_allowed` (the plan has a list, and the host is not in it).
    """
    if target.port not in rules.ports:
        raise _refused("egress_port", f"port {target.port} is not open to this plan")
    labels = target.host.split(".")
    if target.address is None and (len(labels) == 1 or labels[-1] in _NEVER):
        raise _refused("egress_private_name", "this name is not one of the public internet")
    if _among(target.host, providers):
        raise _refused(
            "egress_provider", "a model provider is called through the meter's own paths"
        )
    if _among(target.host, rules.deny):
        raise _refused("egress_denied", "the plan denies this host")
    if rules.allow and not _among(target.host, rules.allow):
        raise _refused("egress_not_allowed", "the plan does not name this host")


def _among(host: str, names: Collection[str]) -> bool:
    """Whether `host` is one of `names`, or lies below one."""
    labels = host.split(".")
    return any(".".join(labels[at:]) in names for at in range(len(labels)))


def _refused(reason: str, message: str) -> AlcoveError:
    return AlcoveError("forbidden", message, reason=reason)
