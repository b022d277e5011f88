"""Which headers pass, in either direction. By list: what is not named does not pass to a provider."""

from collections.abc import Iterable
from functools import lru_cache

from infra.kit.relay import Headers, end_to_end
from metering_proxy.providers.connections import Connection
from metering_proxy.tenant_side.exchange import Exchange

_TO_PROVIDER = frozenset(
    (
        "content-type",
        "accept",
        "user-agent",
        "anthropic-version",
        "anthropic-beta",
        "openai-beta",
    )
)
_KEY_HEADERS = frozenset(("x-api-key", "x-goog-api-key", "api-key"))
_BEARER_HEADERS = frozenset(("authorization", "proxy-authorization"))
_KEPT_FROM_CALLER = frozenset(
    ("set-cookie", "alt-svc", "openai-organization", "openai-project", "server", "via")
)
_ANTHROPIC_VERSION = "2023-06-01"


def keys(exchange: Exchange) -> set[str]:
    """Every key that a request shows, in whichever header. Authorization without Bearer is the key ''.

    Proxy-Authorization is where a client of CONNECT shows it.
    """
    shown = set()
    for name, value in exchange.every_header:
        if name in _KEY_HEADERS:
            shown.add(value)
        elif name in _BEARER_HEADERS:
            kind, _, secret = value.partition(" ")
            shown.add(secret.strip() if kind.lower() == "bearer" else "")
    return shown


def to_provider(
    exchange: Exchange, connection: Connection, wire_name: str, *, encoded: bool
) -> Headers:
    """The headers of the request to the provider: the caller's that are listed, and our credentials.

    `encoded`: whether the answer may come gzipped; not where a part of it is to be taken out.
    """
    found = [item for item in exchange.every_header if item[0] in _TO_PROVIDER]
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
    passed = [item for item in end_to_end(given) if _passes(item[0])]
    if resized:
        passed = [item for item in passed if item[0].lower() != "content-length"]
    return [*passed, *ours]


@lru_cache(512)
def _passes(name: str) -> bool:
    """Whether a provider's header is its caller's business."""
    lower = name.lower()
    return lower not in _KEPT_FROM_CALLER and not lower.startswith("x-alcove-")


def one(headers: Headers, name: str) -> str:
    """The first value of a header, in small letters; empty where it is absent."""
    return next((v.lower() for k, v in headers if k.lower() == name), "")
