"""Which headers pass, in either direction. By list: what is not named does not pass to a provider."""

import re
from collections.abc import Iterable
from functools import lru_cache

from infra.kit.errors import AlcoveError
from infra.kit.relay import Headers, end_to_end
from metering_proxy.providers.connections import Connection
from metering_proxy.tenant_side.exchange import Exchange

_TO_PROVIDER = frozenset(
    (
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
_GZIP = re.compile(r"(?:x-)?gzip(?:\s*;\s*q=([0-9.]+))?")
_ANTHROPIC_VERSION = "2023-06-01"


def keys(exchange: Exchange) -> set[str]:
    """Every key that a request shows, in whichever header. Authorization without Bearer is the key ''; a header
    with nothing in it shows none.

    Proxy-Authorization is where a client of CONNECT shows it.
    """
    shown = set()
    for name, value in exchange.every_header:
        if name in _KEY_HEADERS and value:
            shown.add(value)
        elif name in _BEARER_HEADERS and value:
            kind, _, secret = value.partition(" ")
            if kind.lower() != "bearer":
                shown.add("")
            elif secret.strip():
                shown.add(secret.strip())
    return shown


def check_unpacked(exchange: Exchange) -> None:
    """Raises `invalid` (reason `content_encoding`) for a body that is packed: nobody here would read it."""
    for value in exchange.headers("content-encoding"):
        if value.lower() not in ("", "identity"):
            raise AlcoveError(
                "invalid",
                f"a body is sent as it is, not as content-encoding: {value[:32]}",
                reason="content_encoding",
            )


def to_provider(
    exchange: Exchange, connection: Connection, wire_name: str, content_type: str, *, encoded: bool
) -> Headers:
    """The headers of the request to the provider: the caller's that are listed, and our credentials.

    `content_type`: what the body was read as, so that nobody reads it as something else. `encoded`: whether the
    answer may come gzipped; not where a part of it is to be taken out.
    """
    found = [item for item in exchange.every_header if item[0] in _TO_PROVIDER]
    found.append(("content-type", content_type))
    gzip = encoded and _takes_gzip(", ".join(exchange.headers("accept-encoding")))
    found.append(("accept-encoding", "gzip" if gzip else "identity"))
    if wire_name.startswith("anthropic") and not exchange.header("anthropic-version"):
        found.append(("anthropic-version", _ANTHROPIC_VERSION))
    found += connection.headers(wire_name)
    return found


@lru_cache(256)
def _takes_gzip(accepted: str) -> bool:
    """Whether Accept-Encoding names gzip, and with no weight of zero, which refuses it (RFC 9110, 12.4.2)."""
    found = [_GZIP.fullmatch(item.strip()) for item in accepted.lower().split(",")]
    weights = [named[1] for named in found if named]
    return bool(weights) and all(weight is None or weight.strip("0.") for weight in weights)


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
