"""Kinds of providers as rows of data: which wires they speak under which paths, and how they want their key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from infra.kit import address
from infra.kit.errors import AlcoveError

_CHAT, _EMBEDDINGS, _MESSAGES = "openai_chat", "openai_embeddings", "anthropic_messages"
_OPENAI = {_CHAT: "/chat/completions", _EMBEDDINGS: "/embeddings"}
_ANTHROPIC = {_MESSAGES: "/v1/messages"}
_AT_ROOT = {_CHAT: "/v1/chat/completions", _MESSAGES: "/v1/messages"}


@dataclass(frozen=True, slots=True)
class Kind:
    """`paths` by wire, after the base URL. `limit_field`: where an OpenAI chat request without a token limit
    is given one. `caches_unasked`: input may be written to a cache, at its rate, though nobody asked."""

    name: str
    title: str
    paths: Mapping[str, str]
    models_path: str
    auth: Literal["bearer", "x-api-key"]
    base_url: str | None = None
    version_suffix: str = ""
    limit_field: str = "max_tokens"
    caches_unasked: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "openai",
            "OpenAI",
            _OPENAI,
            "/models",
            "bearer",
            base_url="https://api.openai.com/v1",
            version_suffix="/v1",
            limit_field="max_completion_tokens",
            caches_unasked=True,
        ),
        Kind(
            "anthropic",
            "Anthropic",
            _ANTHROPIC,
            "/v1/models",
            "x-api-key",
            base_url="https://api.anthropic.com",
        ),
        Kind(
            "openai_compatible",
            "OpenAI-compatible server",
            _OPENAI,
            "/models",
            "bearer",
            version_suffix="/v1",
            caches_unasked=True,
        ),
        Kind(
            "anthropic_compatible",
            "Anthropic-compatible server",
            _ANTHROPIC,
            "/v1/models",
            "x-api-key",
        ),
        Kind("local", "Local model", _AT_ROOT, "/v1/models", "bearer"),
        Kind(
            "local-embeddings",
            "Local embeddings",
            {_EMBEDDINGS: "/v1/embeddings"},
            "/v1/models",
            "bearer",
        ),
    )
}


def base_url(kind: Kind, given: str | None) -> str:
    """The base that paths are appended to. Raises `invalid` (details.fields names base_url).

    OpenAI's wire has its version in the base (`…/v1`), Anthropic's in the paths; a bare host or a
    pasted `/v1` means the same either way.
    """
    url = (given or kind.base_url or "").strip().rstrip("/")
    if not url:
        raise field("base_url", "the address of the server is needed, such as https://host/v1")
    try:
        where = address.parse(url)
        parts = urlsplit(url)
    except (AlcoveError, ValueError):
        raise field("base_url", f"{url} is not an address such as https://host/v1") from None
    if where.is_unix or parts.query or parts.fragment or parts.username or parts.password:
        raise field("base_url", "only http(s)://host[:port][/path], without a key in it")
    path = parts.path
    if kind.version_suffix and not path:
        path = kind.version_suffix
    elif not kind.version_suffix:
        path = path.removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def field(name: str, problem: str) -> AlcoveError:
    """The refusal of one field of a form."""
    return AlcoveError("invalid", problem, fields=[{"field": name, "problem": problem}])
