"""A reply in Anthropic's words: Messages, streaming and not (docs: streaming messages)."""

import json
from collections.abc import Iterator
from typing import Any

from tests.scripted.openai_wire import Piece, call_id, fragments
from tests.scripted.reply import Call, Delay, Gate, Reply, StreamError, Usage
from tests.scripted.request import Request

STOP = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def usage(reply: Reply, used: Usage) -> dict[str, Any]:
    """The usage object: input excludes what was cached."""
    if reply.raw_usage is not None:
        return reply.raw_usage
    return {
        "input_tokens": used.input,
        "cache_creation_input_tokens": used.cache_write_5m + used.cache_write_1h,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.cache_write_5m,
            "ephemeral_1h_input_tokens": used.cache_write_1h,
        },
        "output_tokens": used.output,
        "service_tier": "standard",
    }


def whole(reply: Reply, request: Request, used: Usage) -> dict[str, Any]:
    """The body of an answer that does not stream."""
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for n, call in enumerate(reply.tool_calls):
        given = call.arguments if isinstance(call.arguments, dict) else {"raw": call.arguments}
        content.append(_tool_use(call, request, n) | {"input": given})
    body = _message(request) | {"content": content, "stop_reason": STOP[reply.ending]}
    if reply.tells_usage:
        body["usage"] = usage(reply, used)
    return body


def stream(reply: Reply, request: Request, used: Usage) -> Iterator[Piece]:
    """The events of an answer that streams, gates and delays in their places."""
    told = usage(reply, used)
    start = _message(request) | {"content": [], "stop_reason": None}
    if reply.tells_usage:
        start["usage"] = told if reply.raw_usage is not None else told | {"output_tokens": 1}
    yield event("message_start", message=start)
    yield event("ping")
    index, text_open, seen = -1, False, 0
    for part in reply.parts:
        if isinstance(part, Gate | Delay):
            yield part
            continue
        if isinstance(part, StreamError):
            yield event("error", error={"type": part.type, "message": part.message})
            return
        if isinstance(part, str):
            if not text_open:
                index, text_open = index + 1, True
                block = {"type": "text", "text": ""}
                yield event("content_block_start", index=index, content_block=block)
            yield _delta(reply, told, index, {"type": "text_delta", "text": part})
            continue
        if text_open:
            yield event("content_block_stop", index=index)
            text_open = False
        index += 1
        yield from _call_events(reply, told, part, request, seen, index)
        seen += 1
    if text_open:
        yield event("content_block_stop", index=index)
    yield from _ending(reply, told, used)


def _ending(reply: Reply, told: dict[str, Any], used: Usage) -> Iterator[bytes]:
    last: dict[str, Any] = {"delta": {"stop_reason": STOP[reply.ending], "stop_sequence": None}}
    if reply.tells_usage:
        last["usage"] = told if reply.raw_usage is not None else {"output_tokens": used.output}
    yield event("message_delta", **last)
    if not reply.no_end:
        yield event("message_stop")


def _call_events(
    reply: Reply, told: dict[str, Any], call: Call, request: Request, n: int, index: int
) -> Iterator[bytes]:
    at = index if call.index is None else call.index
    block = _tool_use(call, request, n) | {"input": {}}
    yield event("content_block_start", index=at, content_block=block)
    for fragment in fragments(call):
        yield _delta(reply, told, at, {"type": "input_json_delta", "partial_json": fragment})
    yield event("content_block_stop", index=at)


def failure(status: int, message: str, kind: str | None) -> dict[str, Any]:
    """An error body."""
    name = kind or _ERRORS.get(status, "api_error")
    return {
        "type": "error",
        "error": {"type": name, "message": message},
        "request_id": "req_scripted",
    }


def overflow(limit: int) -> dict[str, Any]:
    """The refusal of an input that is too long."""
    return failure(400, f"prompt is too long: more than {limit} tokens", None)


def event(kind: str, **fields: Any) -> bytes:
    """One named frame."""
    body = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {body}\n\n".encode()


def _delta(reply: Reply, told: dict[str, Any], index: int, delta: dict[str, Any]) -> bytes:
    more = {"usage": told} if reply.usage_in_every_chunk else {}
    return event("content_block_delta", index=index, delta=delta, **more)


def _tool_use(call: Call, request: Request, n: int) -> dict[str, Any]:
    identity = call_id(call, request, n).replace("call_", "toolu_")
    return {"type": "tool_use", "id": identity, "name": call.name}


def _message(request: Request) -> dict[str, Any]:
    return {
        "id": f"msg_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "stop_sequence": None,
    }
