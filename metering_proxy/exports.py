"""The ledger's entries as a file, CSV or a JSON object a line: read page by page, so that no length is too much.

Cells of text that a spreadsheet would take for a formula get an apostrophe before them (OWASP, CSV injection).
"""

import csv
import io
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import orjson
from sqlalchemy import ColumnElement, select, tuple_

from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy.models import entry

Format = Literal["csv", "jsonl"]
TYPES: Mapping[Format, str] = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_PAGE = 1_000
# OWASP: also in the wide forms of East Asian scripts, and behind blanks, which spreadsheets skip.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_KEY = (entry.c.started_at, entry.c.request_id, entry.c.attempt, entry.c.kind)
_NAMES = tuple(str(column.name) for column in entry.columns)


class Exports:
    """Writes entries out."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def entries(
        self, *, account: str | None, from_at: int, to_at: int, form: Format
    ) -> AsyncIterator[bytes]:
        """Entries of requests that began in [from_at, to_at), oldest first. Raises `invalid` (period)."""
        if from_at >= to_at:
            raise AlcoveError("invalid", "a period has a beginning and an end", reason="period")
        filters = [entry.c.started_at >= from_at, entry.c.started_at < to_at]
        if account is not None:
            filters.append(entry.c.account == account)
        return self._pages(filters, form)

    async def _pages(
        self, filters: list[ColumnElement[bool]], form: Format
    ) -> AsyncIterator[bytes]:
        if form == "csv":
            yield _csv([list(_NAMES)])
        after: list[ColumnElement[bool]] = []
        while True:
            page = select(entry).where(*filters, *after).order_by(*_KEY).limit(_PAGE)
            async with self._db.read() as reading:
                rows = await reading.rows(page)
            if rows:
                yield _written([dict(row) for row in rows], form)
            if len(rows) < _PAGE:
                return
            last = tuple(rows[-1][column.name] for column in _KEY)
            after = [tuple_(*_KEY) > tuple_(*last)]


def _written(rows: list[dict[str, Any]], form: Format) -> bytes:
    if form == "csv":
        return _csv([[_cell(row[name]) for name in _NAMES] for row in rows])
    return b"".join(orjson.dumps(_object(row)) + b"\n" for row in rows)


def _object(row: dict[str, Any]) -> dict[str, Any]:
    """Parts as an object again; money as text, since readers of JSON round numbers beyond 2^53."""
    money = {name: str(row[name]) for name in _NAMES if name.endswith("_nanos")}
    return {name: row[name] for name in _NAMES} | money | {"parts": orjson.loads(row["parts"])}


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value
