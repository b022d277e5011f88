"""Which hosts may be asked for, judged by their name and port alone; addresses are addresses.py's matter."""

from collections.abc import Collection
from dataclasses import dataclass

from infra.kit.errors import AlcoveError
from metering_proxy.egress.addresses import IPAddress, carried
from metering_proxy.egress.hosts import spelled
from metering_proxy.egress.rules import Rules

# Names that are no business of the public DNS: RFC 6761, 6762, 7686, 8375, 9476, and ICANN's `internal`.
_NEVER = ("localhost", "local", "internal", "arpa", "onion", "alt", "invalid", "test")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a caller wants to go. `host`: in its one spelling (hosts.py)."""

    host: str
    port: int
    address: IPAddress | None


def parse(authority: str) -> Target:
    """The target that `host:port` names. Raises `invalid` (`egress_odd_host`) for any doubtful spelling."""
    host, _, port = authority.rpartition(":")
    found = spelled(host)
    if found is None:
        raise AlcoveError(
            "invalid",
            "a host is a name, or an address in its usual spelling",
            reason="egress_odd_host",
        )
    return Target(found[0], int(port), found[1])


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
    inner = carried(target.address)
    hosts = [target.host] if inner is None else [target.host, str(inner)]
    if any(_among(host, providers) for host in hosts):
        raise _refused(
            "egress_provider", "a model provider is called through the meter's own paths"
        )
    if any(_among(host, rules.deny) for host in hosts):
        raise _refused("egress_denied", "the plan denies this host")
    if rules.allow and not _among(target.host, rules.allow):
        raise _refused("egress_not_allowed", "the plan does not name this host")


def _among(host: str, names: Collection[str]) -> bool:
    """Whether `host` is one of `names`, or lies below one."""
    labels = host.split(".")
    return any(".".join(labels[at:]) in names for at in range(len(labels)))


def _refused(reason: str, message: str) -> AlcoveError:
    return AlcoveError("forbidden", message, reason=reason)
