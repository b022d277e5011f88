"""How the control listener words its refusals, for its description: the shape of infra.kit.errors.

A schema and not a model: of a model FastAPI makes a field for each status of each route whenever an app is made.
"""

from typing import Any

_CODED: dict[str, Any] = {
    "type": "object",
    "description": "One of infra.kit.errors' codes, a sentence, and details for a machine.",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {"type": "object"},
        "request_id": {"type": "string"},
    },
    "required": ["code", "message"],
}
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "properties": {"error": _CODED},
    "required": ["error"],
}
_WHEN = {
    400: "It makes no sense (`invalid`).",
    401: "The service secret is missing (`unauthorized`).",
    403: "Not for this tenant (`forbidden`).",
    404: "There is no such thing (`not_found`).",
    409: "It stands against what is there (`conflict`).",
    502: "A provider answered with nonsense (`bad_gateway`).",
    503: "Not at this moment (`unavailable`).",
    504: "A provider did not answer in time (`timeout`).",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": when, "content": {"application/json": {"schema": _PROBLEM}}}
    for status, when in _WHEN.items()
}
