"""A reply in OpenAI's words: chat.completions, streaming and not (docs: API reference, chat streaming)."""

import json
from collections.abc import Iterator
from typing import Any

from tests.scripted.reply import Call, Delay, Gate, Reply, StreamError, Usage
from tests.scripted.request import Request

FINISH = {"end": "stop", "tools": "tool_calls", "length": "length", "refusal": "content_filter"}
Piece = bytes | Gate | Delay


def usage(reply: Reply, used: Usage) -> dict[str, Any]:
    """The usage object: prompt tokens include what was cached."""
    if reply.raw_usage is not None:
        return reply.raw_usage
    return {
        "prompt_tokens": used.total_input,
        "completion_tokens": used.output,
        "total_tokens": used.total_input + used.output,
        "prompt_tokens_details": {
            "cached_tokens": used.cache_read,
            "cache_write_tokens": used.cache_write_5m + used.cache_write_1h,
        },
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }


def whole(reply: Reply, request: Request, used: Usage) -> dict[str, Any]:
    """The body of an answer that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [
            _call(call, request, n, arguments(call)) | {"index": n}
            for n, call in enumerate(reply.tool_calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": FINISH[reply.ending]}
    body = _head(request, "chat.completion") | {"choices": [choice]}
    if reply.tells_usage:
        body["usage"] = usage(reply, used)
    return body


def stream(reply: Reply, request: Request, used: Usage) -> Iterator[Piece]:
    """The events of an answer that streams, gates and delays in their places."""
    head = _head(request, "chat.completion.chunk")
    told = usage(reply, used)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        body = head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        if reply.usage_in_every_chunk:
            body["usage"] = told
        elif request.include_usage and reply.tells_usage:
            body["usage"] = None
        return event(body)

    yield chunk({"role": "assistant", "content": ""})
    seen = 0
    for part in reply.parts:
        if isinstance(part, Gate | Delay):
            yield part
        elif isinstance(part, StreamError):
            yield event({"error": {"message": part.message, "type": part.type, "code": None}})
            return
        elif isinstance(part, Call):
            index = seen if part.index is None else part.index
            opening = _call(part, request, seen, "")
            yield chunk({"tool_calls": [{"index": index, **opening}]})
            for fragment in fragments(part):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
            seen += 1
        else:
            yield chunk({"content": part})
    yield chunk({}, FINISH[reply.ending])
    if request.include_usage and reply.tells_usage:
        yield event(head | {"choices": [], "usage": told})
    if not reply.no_end:
        yield b"data: [DONE]\n\n"


def failure(status: int, message: str, kind: str | None) -> dict[str, Any]:
    """An error body."""
    usual = {401: "invalid_api_key", 429: "rate_limit_exceeded", 400: "invalid_request_error"}
    name = kind or usual.get(status, "server_error")
    return {"error": {"message": message, "type": name, "param": None, "code": name}}


def overflow(limit: int) -> dict[str, Any]:
    """The refusal of an input that is too long."""
    message = f"This model's maximum context length is {limit} tokens."
    body = failure(400, message, "context_length_exceeded")
    body["error"]["type"] = "invalid_request_error"
    return body


def event(body: dict[str, Any]) -> bytes:
    """One data frame."""
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def arguments(call: Call) -> str:
    """The arguments as they travel."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def fragments(call: Call) -> list[str]:
    """The arguments cut into the pieces that the call asks for."""
    whole_text = arguments(call)
    size = max(1, -(-len(whole_text) // max(1, call.fragments)))
    return [whole_text[i : i + size] for i in range(0, len(whole_text), size)]


def call_id(call: Call, request: Request, n: int) -> str:
    """The call's own id, or one that no other answer of this provider uses."""
    return call.id or f"call_{request.number}_{n}"


def _call(call: Call, request: Request, n: int, text: str) -> dict[str, Any]:
    return {
        "id": call_id(call, request, n),
        "type": "function",
        "function": {"name": call.name, "arguments": text},
    }


def _head(request: Request, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.number}",
        "object": kind,
        "created": request.at_ms // 1000,
        "model": request.model,
    }
