"""How the control listener words its refusals, for its description: the shape of infra.kit.errors."""

from typing import Any

from pydantic import BaseModel


class Coded(BaseModel):
    """What went wrong: one of infra.kit.errors' codes, a sentence, and details for a machine."""

    code: str
    message: str
    details: dict[str, Any] = {}
    request_id: str = ""


class Problem(BaseModel):
    """A refusal."""

    error: Coded


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
    status: {"model": Problem, "description": when} for status, when in _WHEN.items()
}
