"""Refusals in the caller's own wire shape, so that official clients understand them and do not try again.

Shapes and codes: wires facts 2.6. A client library repeats 429 and 5xx by itself unless `x-should-retry: false`;
only what a moment can mend (503) leaves that out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from infra.kit.errors import AlcoveError
from metering_proxy.wires.wire import Shape

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_OPENAI_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


_GEMINI_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of ours, ready to be sent."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


def refusal(error: AlcoveError, shape: Shape, request_id: str, now_at: int) -> Refusal:
    """The answer for `error`. Of its details `reason`, `resets_at` (ms), `retry_after_s` and `field` are told."""
    reason = error.reason or error.code
    body = _BODIES[shape](error, reason, request_id)
    headers = [
        ("content-type", "application/json"),
        ("x-alcove-reason", reason),
        ("x-alcove-request-id", request_id),
    ]
    if error.status != 503:
        headers.append(("x-should-retry", "false"))
    resets_at = error.details.get("resets_at")
    if isinstance(resets_at, int):
        headers.append(("x-alcove-resets-at", str(resets_at)))
    if (seconds := _retry_after_s(error, resets_at, now_at)) is not None:
        headers.append(("retry-after", str(seconds)))
    return Refusal(error.status, headers, body)


def _retry_after_s(error: AlcoveError, resets_at: object, now_at: int) -> int | None:
    given = error.details.get("retry_after_s")
    if isinstance(given, int):
        return given
    if error.code == "rate_limited" and isinstance(resets_at, int):
        return max(1, -(-(resets_at - now_at) // 1000))
    return 1 if error.code == "unavailable" else None


def _openai(error: AlcoveError, reason: str, request_id: str) -> bytes:
    kind = _OPENAI_TYPES.get(
        error.status, "invalid_request_error" if error.status < 500 else "api_error"
    )
    field = error.details.get("field")
    return orjson.dumps(
        {"error": {"message": error.message, "type": kind, "param": field, "code": reason}}
    )


def _anthropic(error: AlcoveError, reason: str, request_id: str) -> bytes:
    kind = _ANTHROPIC_TYPES.get(error.status, "api_error")
    told = {"type": kind, "message": error.message, "alcove_reason": reason}
    return orjson.dumps({"type": "error", "error": told, "request_id": request_id})


def _gemini(error: AlcoveError, reason: str, request_id: str) -> bytes:
    details: list[dict[str, object]] = [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason.upper(),
            "domain": "alcove",
            "metadata": {"request_id": request_id},
        }
    ]
    status = _GEMINI_STATUS.get(error.status, "INTERNAL")
    told = {"code": error.status, "message": error.message, "status": status, "details": details}
    return orjson.dumps({"error": told})


_BODIES: dict[Shape, Callable[[AlcoveError, str, str], bytes]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
