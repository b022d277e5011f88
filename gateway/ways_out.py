"""Why a way out was refused, as an admin reads it. The reasons are those of docs/contracts.md."""

_WORDS = {
    "egress_off": "the way out was closed",
    "egress_plan": "the plan has no way out",
    "egress_port": "a port that the plan does not open",
    "egress_private_name": "not a public name",
    "egress_provider": "a model provider, to be asked through the meter",
    "egress_denied": "denied by the plan",
    "egress_not_allowed": "not on the plan's list",
    "egress_address": "not a public address",
    "egress_odd_host": "an odd spelling of a host",
    "egress_at_once": "too many at once",
    "egress_ways_day": "the day's connections were used up",
    "egress_bytes_day": "the day's bytes were used up",
    "egress_unknown_name": "no host of this name",
    "egress_unreachable": "the host took no connection",
    "egress_slow": "no answer in time",
    "no_such_connection": "no such connection",
    "connection_expired": "access had ended",
    "no_such_path": "no path of it was named",
    "suspended": "the tenant was suspended",
    "deleted": "the tenant was deleted",
}


def refusal(word: str) -> str:
    """The reason in a few words."""
    return _WORDS.get(word, word.replace("_", " "))
