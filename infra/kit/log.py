"""LIGHT. Structured logs: one JSON object a line, with the ids that follow a message through the house.

Logs name ids, sizes and times; never text of messages, never secrets.
"""

import json
import logging
import sys
import time
from contextvars import ContextVar
from typing import Any

_context: ContextVar[dict[str, str]] = ContextVar("log_context", default={})  # noqa: B039 (never mutated)
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
# Libraries that narrate what our own lines say already (alembic at every readiness check).
_NOISY = ("uvicorn.access", "uvicorn.error", "alembic", "httpx", "docker", "urllib3")


class _Binding:
    """A context manager by hand: every request enters one, and a generator's costs several times as much."""

    __slots__ = ("_fields", "_token")

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _context.set(_context.get() | self._fields)

    def __exit__(self, *_: object) -> None:
        _context.reset(self._token)


def bound(**fields: str) -> _Binding:
    """Adds fields (request_id, tenant, turn …) to every line logged inside, here and in awaited calls."""
    return _Binding(fields)


def bind(**fields: str) -> None:
    """Adds fields to every later line of this task."""
    _context.set({**_context.get(), **fields})


def context() -> dict[str, str]:
    """The fields bound now."""
    return _context.get()


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; control characters are escaped, so a line is always one line."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "at": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "service": self._service,
            "event": record.getMessage(),
            **getattr(record, "bound", {}),
        }
        line.update({k: v for k, v in vars(record).items() if k not in _STANDARD and k != "bound"})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class _Bound(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.bound = dict(_context.get())
        return True


def configure(service: str, level: str = "info") -> None:
    """Sends every log line of this process to standard output as JSON."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter(service))
    handler.addFilter(_Bound())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel("WARNING")
