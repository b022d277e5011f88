"""Which headers pass, in either direction. By list: what is not named does not pass to a provider."""

from collections.abc import Iterable
from itertools import chain

from infra.kit.relay import Headers, end_to_end
from metering_proxy.providers.connections import Connection
from metering_proxy.tenant_side.exchange import Exchange

_TO_PROVIDER = (
    "content-type",
    "accept",
    "user-agent",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
)
_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_KEPT_FROM_CALLER = frozenset(
    ("set-cookie", "alt-svc", "openai-organization", "openai-project", "server", "via")
)
_ANTHROPIC_VERSION = "2023-06-01"


def keys(exchange: Exchange) -> set[str]:
    """Every key that a request shows, in whichever header. Authorization without Bearer is the key ''.

    Proxy-Authorization is where a client of CONNECT shows it.
    """
    shown = {value for name in _KEY_HEADERS for value in exchange.headers(name)}
    given = (exchange.headers("authorization"), exchange.headers("proxy-authorization"))
    for value in chain.from_iterable(given):
        kind, _, secret = value.partition(" ")
        shown.add(secret.strip() if kind.lower() == "bearer" else "")
    return shown


def to_provider(
    exchange: Exchange, connection: Connection, wire_name: str, *, encoded: bool
) -> Headers:
    """The headers of the request to the provider: the caller's that are listed, and our credentials.

    `encoded`: whether the answer may come gzipped; not where a part of it is to be taken out.
    """
    found = [(name, value) for name in _TO_PROVIDER for value in exchange.headers(name)]
    accepted = exchange.header("accept-encoding") or ""
    gzip = encoded and "gzip" in accepted
    found.append(("accept-encoding", "gzip" if gzip else "identity"))
    if wire_name.startswith("anthropic") and not exchange.header("anthropic-version"):
        found.append(("anthropic-version", _ANTHROPIC_VERSION))
    found += connection.headers(wire_name)
    return found


def to_caller(
    given: Headers, *, ours: Iterable[tuple[str, str]], resized: bool
) -> list[tuple[str, str]]:
    """The headers of the answer: the provider's, but for those about a connection or its account, and ours.

    `resized`: a part of the body may be taken out, so its length is not known.
    """
    passed = [
        (name, value)
        for name, value in end_to_end(given)
        if name.lower() not in _KEPT_FROM_CALLER
        and not name.lower().startswith("x-alcove-")
        and not (resized and name.lower() == "content-length")
    ]
    return [*passed, *ours]


def one(headers: Headers, name: str) -> str:
    """The first value of a header, in small letters; empty where it is absent."""
    return next((v.lower() for k, v in headers if k.lower() == name), "")
