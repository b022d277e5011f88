"""What can go wrong with a model, told apart by what to do about it, and in words for the person.

AlcoveError
└── ModelError          the model, or the meter in front of it, did not answer
      retry_in_s        when it is worth asking again; None: it is not
      ContextTooLong    the request is longer than the model takes; a shorter one may pass
"""

import random
from collections.abc import Mapping
from typing import Any

import orjson

from infra.kit.errors import AlcoveError

_LONGEST_WAIT_S = 20.0
_TOO_LONG = (
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "exceeds the context",
)
# The meter's, of a request for which a limit has no room even where nothing is used: a shorter one may have.
_LARGER_THAN = "larger_than_"
_LARGER_THAN_THE_PLAN = "This question and what belongs to it are more than your plan allows."
_SAID = {
    "quota_charge_month": "What is left of this month's quota does not cover this answer.",
    "suspended": "This account is suspended.",
    "requests_minute": "Those were many questions in one minute. Please try again shortly.",
    "concurrent_calls": "Too many answers are being written at once. Please try again shortly.",
    "no_provider": "No model is connected to this service yet.",
    "model_not_priced": "The chosen model cannot be used: it has no price.",
    "model_unknown": "The chosen model is not available any more.",
    "too_large": "This conversation has grown too large for the model.",
}
_SAID_OF_CODE = {
    "quota_exhausted": "What is left of your plan does not cover this answer.",
    "unauthorized": "The model's service did not accept its key. Whoever runs this Alcove has to look at it.",
    "forbidden": "The model's service refused this request.",
    "rate_limited": "The model is busy with too many requests. Please try again shortly.",
    "too_large": "This conversation has grown too large for the model.",
    "invalid": "The model's service did not understand the request.",
    "not_found": "The chosen model is not available.",
    "timeout": "The model took too long to answer.",
    "unavailable": "The model cannot be reached right now.",
    "bad_gateway": "The model's answer broke off.",
}


class ModelError(AlcoveError):
    """The model did not answer, or not to the end."""

    def __init__(
        self, code: str, message: str, *, retry_in_s: float | None = None, **details: Any
    ) -> None:
        super().__init__(code, message, **details)
        self.retry_in_s = retry_in_s


class ContextTooLong(ModelError):
    """The request is longer than the model takes."""


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error that an answer other than 200 stands for, in either wire's shape.

    Waits are honoured up to 20 s; `x-should-retry: false` forbids another try (facts: wires 2.6).
    """
    kind, said = _named(body)
    reason = headers.get("x-alcove-reason") or kind
    details: dict[str, Any] = {"status": status}
    if reason:
        details["reason"] = reason
    if (resets := headers.get("x-alcove-resets-at", "")).isdigit():
        details["resets_at"] = int(resets)
    if reason.startswith(_LARGER_THAN):
        return ContextTooLong("too_large", _LARGER_THAN_THE_PLAN, **details)
    if status in (400, 413) and any(mark in f"{kind} {said}".lower() for mark in _TOO_LONG):
        return ContextTooLong("too_large", _SAID_OF_CODE["too_large"], **details)
    code = _code(status, reason)
    wait = _wait_s(status, headers) if headers.get("x-should-retry") != "false" else None
    return ModelError(code, _sentence(reason, code), retry_in_s=wait, **details)


def in_stream(kind: str, message: str) -> ModelError:
    """The error that a provider sends inside a stream, after HTTP 200."""
    if any(mark in f"{kind} {message}".lower() for mark in _TOO_LONG):
        return ContextTooLong("too_large", _SAID_OF_CODE["too_large"], reason=kind)
    busy = "overloaded" in kind or "rate_limit" in kind
    code = "unavailable" if busy else "bad_gateway"
    return ModelError(code, _SAID_OF_CODE[code], retry_in_s=0.0, reason=kind or "stream_error")


def broken(reason: str) -> ModelError:
    """The stream ended before the answer did (`stream_cut`), or there was none (`empty_answer`)."""
    return ModelError("bad_gateway", _SAID_OF_CODE["bad_gateway"], retry_in_s=0.0, reason=reason)


def unreachable(reason: str) -> ModelError:
    """Nobody took the connection (`network`), or nobody answered in time (`timeout`)."""
    code = "timeout" if reason == "timeout" else "unavailable"
    return ModelError(code, _SAID_OF_CODE[code], retry_in_s=0.0, reason=reason)


def pause_s(error: ModelError, attempt: int) -> float | None:
    """How long to wait before trying again; None: not at all. Half a second, doubling, with jitter."""
    if error.retry_in_s is None or error.retry_in_s > _LONGEST_WAIT_S:
        return None
    backoff_s = 0.5 * float(2**attempt)
    return error.retry_in_s + backoff_s * (0.5 + random.random() / 2)  # noqa: S311 (jitter, no secret)


def _named(body: bytes) -> tuple[str, str]:
    """The machine word and the sentence of an error body: OpenAI's `error.code`, Anthropic's `error.type`."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", ""
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, dict):
        return "", ""
    kind = error.get("code") or error.get("type") or ""
    return str(kind), str(error.get("message") or "")


def _code(status: int, reason: str) -> str:
    if reason in ("no_provider", "model_not_priced", "model_unknown"):
        return "unavailable"
    table = {400: "invalid", 401: "unauthorized", 402: "quota_exhausted", 403: "forbidden",
             404: "not_found", 408: "timeout", 413: "too_large", 429: "rate_limited", 504: "timeout"}  # fmt: skip
    return table.get(status, "unavailable" if status >= 500 else "invalid")


def _sentence(reason: str, code: str) -> str:
    return _SAID.get(reason) or _SAID_OF_CODE.get(code, _SAID_OF_CODE["unavailable"])


def _wait_s(status: int, headers: Mapping[str, str]) -> float | None:
    if status not in (408, 409, 429) and status < 500:
        return None
    try:
        return max(0.0, float(headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
