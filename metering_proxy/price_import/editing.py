"""The price file as text: read into plain rows, and given new ones where they belong. Comments and order stay."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from metering_proxy.price_import.diff import Row
from metering_proxy.providers import price_file

_HEAD = "[[model]]"


def read(path: Path) -> Sequence[Mapping[str, Any]]:
    """The models of the file, as they stand there."""
    found: list[dict[str, Any]] = tomllib.loads(path.read_text())["model"]
    return found


def add(path: Path, rows: Sequence[Row]) -> None:
    """Adds rows, each to its model; all or none, and only if the meter can read what comes out.

    Raises ValueError where it cannot.
    """
    text = path.read_text()
    for row in rows:
        text = _with_model(text, row) if row.model is not None else _with_price(text, row)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    try:
        price_file.load(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _with_model(text: str, row: Row) -> str:
    assert row.model is not None
    fields = "".join(f"{name} = {_toml(value)}\n" for name, value in row.model.items())
    return f"{text.rstrip()}\n\n{_HEAD}\n{fields}\n{_block(row.price)}"


def _with_price(text: str, row: Row) -> str:
    """The text with the row after the model's last one, before what belongs to the next model."""
    lines = text.splitlines(keepends=True)
    heads = [n for n, line in enumerate(lines) if line.strip() == _HEAD]
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        [model] = tomllib.loads("".join(lines[start:end]))["model"]
        if f"{model['provider']}/{model['id']}" != row.name:
            continue
        while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
            end -= 1
        return "".join([*lines[:end], "\n", _block(row.price), *lines[end:]])
    raise ValueError(f"{row.name} is not in the file")


def _block(price: Mapping[str, Any]) -> str:
    return "[[model.price]]\n" + "".join(
        f"{name} = {_toml(value)}\n" for name, value in price.items()
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(n)} = {_toml(v)}" for n, v in value.items()) + " }"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:_}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _key(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'
