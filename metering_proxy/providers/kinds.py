"""Kinds of providers, read from providers.toml: which wires they speak under which paths, and their ways."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote, urlsplit

from infra.kit import address
from infra.kit.errors import AlcoveError, field_error
from metering_proxy.egress.addresses import OperatorsOwn, literal
from metering_proxy.providers.dialling import NEVER
from metering_proxy.wires.dialect import PLAIN, Dialect

Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"]
_FILE = Path(__file__).parents[1] / "providers.toml"


@dataclass(frozen=True, slots=True)
class Kind:
    """One row; its fields are explained at the head of providers.toml."""

    name: str
    title: str
    paths: Mapping[str, str]
    models_path: str
    auth: Auth = "bearer"
    auth_on: Mapping[str, Auth] | None = None
    base_url: str | None = None
    version_suffix: str = ""
    limit_fields: tuple[str, ...] = ("max_tokens",)
    include_usage: bool = True
    caches_unasked: bool = False
    keyless: bool = False
    built_in: bool = False
    members: frozenset[str] = frozenset()
    dialect: Dialect = PLAIN

    def path(self, wire: str, model: str) -> str:
        """Where a call goes, after the base."""
        return self.paths[wire].replace("{model}", quote(model, safe="/"))

    def key_header(self, wire: str, key: str) -> tuple[str, str]:
        """The header that carries its key on one wire (`models`: when it is asked for its list)."""
        auth = (self.auth_on or {}).get(wire, self.auth)
        return ("authorization", f"Bearer {key}") if auth == "bearer" else (auth, key)


@cache
def kinds() -> Mapping[str, Kind]:
    """Every kind by name. Raises ValueError, naming what is wrong in the file."""
    return load(_FILE)


def load(path: Path) -> Mapping[str, Kind]:
    """The kinds in `path`, in its order. Raises ValueError, naming what is wrong."""
    found: dict[str, Kind] = {}
    for row in tomllib.loads(path.read_text())["provider"]:
        try:
            kind = _kind(row)
        except (TypeError, KeyError) as error:
            raise ValueError(f"{path.name}: {row.get('name')}: {error}") from error
        if kind.name in found:
            raise ValueError(f"{path.name}: {kind.name} stands there twice")
        found[kind.name] = kind
    return found


def _kind(row: dict[str, Any]) -> Kind:
    dialect = {name: _tuple(value) for name, value in row.get("dialect", {}).items()}
    values = {name: _tuple(value) for name, value in row.items() if name != "dialect"}
    values["members"] = frozenset(values.get("members", ()))
    kind = Kind(**values, dialect=Dialect(**dialect) if dialect else PLAIN)
    ways = {kind.auth, *(kind.auth_on or {}).values()}
    if unknown := ways - set(get_args(Auth)):
        raise KeyError(f"unknown way to show a key: {', '.join(sorted(unknown))}")
    return kind


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def base_url(kind: Kind, given: str | None) -> str:
    """The base that paths are appended to. Raises `invalid` (details.fields names base_url).

    Some have their version in the base (`…/v1`), others in the paths; a bare host or a pasted `/v1` means
    the same either way.
    """
    url = (given or kind.base_url or "").strip().rstrip("/")
    if not url:
        raise field_error(
            "base_url", "the address of the server is needed, such as https://host/v1"
        )
    try:
        where = address.parse(url)
        parts = urlsplit(url)
        if parts.port == 0 or len(url.split()) > 1:
            raise ValueError(url)
    except (AlcoveError, ValueError):
        raise field_error("base_url", f"{url} is not an address such as https://host/v1") from None
    if where.is_unix or parts.query or parts.fragment or parts.username or parts.password:
        raise field_error("base_url", "only http(s)://host[:port][/path], without a key in it")
    spelled = literal(where.host or "")
    if spelled is not None and OperatorsOwn().refuses(spelled):
        raise field_error("base_url", NEVER)
    path = parts.path
    if kind.version_suffix and not path:
        path = kind.version_suffix
    elif not kind.version_suffix:
        path = path.removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"
