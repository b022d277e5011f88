"""An answer or an event as JSON, and whether it is one: a status of 200 may stand before an error, or a page."""

import re
from typing import Any

import orjson

_PAGE = re.compile(rb"\s*<(?:!doctype|html)\b", re.IGNORECASE)


def read(body: bytes) -> dict[str, Any] | None:
    """The JSON object that the body is, or None."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None


def failed(answer: dict[str, Any] | None, *parts: str) -> bool:
    """Whether that is no answer: nothing that can be read, an error, or not one of the parts that it must have."""
    return not answer or bool(answer.get("error")) or not any(answer.get(part) for part in parts)


def is_refusal(body: bytes) -> bool:
    """Whether a body that need not be JSON is a page of HTML or says an error."""
    answer = read(body)
    return _PAGE.match(body) is not None or bool(answer and answer.get("error"))
