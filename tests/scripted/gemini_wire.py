"""A reply in Gemini's words: generateContent, its stream as events or as one array (docs: ai.google.dev/api)."""

import json
from collections.abc import Iterator
from typing import Any

from tests.scripted.openai_wire import Piece
from tests.scripted.reply import Call, Delay, Gate, Reply, StreamError, Usage
from tests.scripted.request import Request

FINISH = {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def usage(reply: Reply, used: Usage) -> dict[str, Any]:
    """The usage object: the prompt includes what was cached, candidates leave thoughts out."""
    if reply.raw_usage is not None:
        return reply.raw_usage
    return {
        "promptTokenCount": used.total_input,
        "cachedContentTokenCount": used.cache_read,
        "candidatesTokenCount": used.output - used.reasoning,
        "thoughtsTokenCount": used.reasoning,
        "totalTokenCount": used.total_input + used.output,
    }


def whole(reply: Reply, request: Request, used: Usage) -> dict[str, Any]:
    """The body of an answer that does not stream."""
    parts = [{"text": reply.text}] if reply.text else []
    return _chunk(reply, request, used, [*parts, *map(_call, reply.tool_calls)], last=True)


def stream(reply: Reply, request: Request, used: Usage) -> Iterator[Piece]:
    """The chunks of an answer that streams, gates and delays in their places."""
    events = "alt=sse" in request.path
    opened = False

    def framed(chunk: dict[str, Any]) -> bytes:
        nonlocal opened
        text = json.dumps(chunk, ensure_ascii=False)
        before, opened = (",\r\n" if opened else "["), True
        return (f"data: {text}\n\n" if events else before + text).encode()

    for part in reply.parts:
        if isinstance(part, Gate | Delay):
            yield part
        elif isinstance(part, StreamError):
            yield framed(failure(503, part.message, None))
            return
        else:
            said = _call(part) if isinstance(part, Call) else {"text": part}
            yield framed(_chunk(reply, request, used, [said], last=False))
    if not reply.no_end:
        yield framed(_chunk(reply, request, used, [{"text": ""}], last=True))
        if not events:
            yield b"]"


def failure(status: int, message: str, kind: str | None) -> dict[str, Any]:
    """An error body."""
    name = kind or _STATUS.get(status, "INTERNAL")
    details = []
    if status == 429:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
        details.append(retry)
    return {"error": {"code": status, "message": message, "status": name, "details": details}}


def overflow(limit: int) -> dict[str, Any]:
    """The refusal of an input that is too long."""
    return failure(400, f"the input token count exceeds the maximum of {limit}", None)


def _chunk(
    reply: Reply, request: Request, used: Usage, parts: list[dict[str, Any]], *, last: bool
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = FINISH[reply.ending]
    body: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": request.model,
        "responseId": f"r{request.number}",
    }
    if reply.tells_usage:
        told = usage(reply, used)
        so_far = told | {"candidatesTokenCount": 1} if reply.raw_usage is None else told
        body["usageMetadata"] = told if last else so_far
    return body


def _call(call: Call) -> dict[str, Any]:
    given = call.arguments if isinstance(call.arguments, dict) else {"raw": call.arguments}
    return {"functionCall": {"name": call.name, "args": given}}
