"""An answer or an event as JSON, and whether it is one: a status of 200 may stand before an error, or a page."""

import json
import re
from contextlib import suppress
from typing import Any

import orjson

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,47}")
_PAGE = re.compile(rb"\s*<(?:!doctype|html)\b", re.IGNORECASE)
# A longer body that is no strict JSON stays unread: the slow reader holds up every other call.
_MOST_LOOSE_BYTES = 1024 * 1024


def parse(body: bytes) -> Any:
    """The JSON value that the body is; None where it is none.

    Half of a character, NaN, a byte order mark or broken UTF-8, which its caller may read over, hide no usage.
    """
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(body)
    return _loose(body) if len(body) <= _MOST_LOOSE_BYTES else None


def _loose(body: bytes) -> Any:
    try:
        text = body.decode("utf-8-sig", "replace")
        found = json.loads(text, parse_constant=lambda _: None)
        return orjson.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def read(body: bytes) -> dict[str, Any] | None:
    """The JSON object that the body is, or None."""
    answer = parse(body)
    return answer if isinstance(answer, dict) else None


def failed(answer: dict[str, Any] | None, *parts: str) -> bool:
    """Whether that is no answer: nothing that can be read, an error, or not one of the parts that it must have."""
    return not answer or bool(answer.get("error")) or not any(answer.get(part) for part in parts)


def word(error: Any) -> str | None:
    """The provider's own word for an error, if it gives one that is fit for a log: `overloaded_error`."""
    named = (
        [error.get(name) for name in ("code", "type", "status")]
        if isinstance(error, dict)
        else [error]
    )
    return next((w for w in named if isinstance(w, str) and _WORD.fullmatch(w)), None)


def is_refusal(body: bytes) -> bool:
    """Whether a body that need not be JSON is a page of HTML or says an error."""
    answer = read(body)
    return _PAGE.match(body) is not None or bool(answer and answer.get("error"))
