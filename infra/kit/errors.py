"""LIGHT. Errors with a code that survives the wire.

AlcoveError carries one of the codes below, a sentence for a person, and optional details for a
machine (`details["reason"]` is a finer word in snake_case). One table maps codes to HTTP status;
clients read it backwards, so that a caller raises what the callee raised.
"""

from typing import Any

STATUS: dict[str, int] = {
    "invalid": 400,
    "unauthorized": 401,
    "quota_exhausted": 402,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "bad_gateway": 502,
    "unavailable": 503,
    "timeout": 504,
}
_CODES = {status: code for code, status in STATUS.items()}
_DEEPEST = 16


class AlcoveError(Exception):
    """A refusal or failure that the other side is meant to understand."""

    def __init__(self, code: str, message: str, /, **details: Any) -> None:
        if code not in STATUS:
            raise ValueError(f"unknown error code {code!r}")
        self.code = code
        self.message: str = _sayable(message)
        self.details: dict[str, Any] = _sayable(details)
        super().__init__(self.message)

    @property
    def status(self) -> int:
        """The HTTP status of the code."""
        return STATUS[self.code]

    @property
    def reason(self) -> str | None:
        """The finer machine word, if there is one."""
        reason = self.details.get("reason")
        return reason if isinstance(reason, str) else None

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """The JSON that crosses the wire."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = self.details
        if request_id:
            error["request_id"] = request_id
        return {"error": error}


def _sayable(value: Any, depth: int = 0) -> Any:
    """The value as it can be sent again: with `?` for lone surrogates, which come out of JSON escapes, and
    with None for what lies deeper than anything of ours, as no writer of JSON takes every depth."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict | list | tuple):
        if depth == _DEEPEST:
            return None
        if isinstance(value, dict):
            return {_sayable(key): _sayable(each, depth + 1) for key, each in value.items()}
        return [_sayable(each, depth + 1) for each in value]
    return value


def from_response(status: int, body: object) -> AlcoveError:
    """The error that a service's answer stands for; an answer without a known shape keeps its status."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        error = body["error"]
        code, message = error.get("code"), error.get("message")
        details = error.get("details")
        if isinstance(code, str) and code in STATUS and isinstance(message, str):
            named = {str(k): v for k, v in details.items()} if isinstance(details, dict) else {}
            return AlcoveError(code, message, **named)
    fallback = _CODES.get(status, "invalid" if 400 <= status < 500 else "bad_gateway")
    return AlcoveError(fallback, f"the service answered HTTP {status} without saying why")


def field_error(field: str, problem: str) -> AlcoveError:
    """`invalid`, for one field of a form: `details.fields` says which, and what is wrong with it."""
    return AlcoveError("invalid", problem, fields=[{"field": field, "problem": problem}])
