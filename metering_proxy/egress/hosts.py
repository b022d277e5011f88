"""How a host is written: each in one way, so that what is asked for and what a rule names compare as text."""

import re

from metering_proxy.egress.addresses import IPAddress, literal

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# WHATWG URL, 3.5: a host that ends so is a number to some resolver (2130706433, 0x7f.1, 0177.0.0.1).
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")


def spelled(host: str) -> tuple[str, IPAddress | None] | None:
    """The host in its one spelling, and the address where it is one; None for any doubtful spelling.

    A name: in small letters, without a dot at its end, other alphabets as the DNS has them (`xn--…`). An
    address: in brackets where it is one of IPv6, given back without them, as RFC 5952 writes it.
    """
    bracketed = host.startswith("[")
    text = host.removeprefix("[").removesuffix("]").lower()
    if not bracketed:
        text = text.removesuffix(".")
    address = literal(text) if "%" not in text else None  # a scope is this machine's own matter
    if address is not None and (address.version == 6) == bracketed:
        return str(address), address
    labels = text.split(".")
    if (
        bracketed
        or len(text) > 253
        or not all(_LABEL.fullmatch(label) for label in labels)
        or _NUMBER.fullmatch(labels[-1])
    ):
        return None
    return text, None
