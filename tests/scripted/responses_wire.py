"""A reply in the words of OpenAI's Responses, streaming and not (docs: API reference, responses streaming)."""

import json
from collections.abc import Iterator
from typing import Any

from tests.scripted import openai_wire
from tests.scripted.openai_wire import Piece, arguments, call_id, fragments
from tests.scripted.reply import Call, Delay, Gate, Reply, StreamError, Usage
from tests.scripted.request import Request

failure, overflow = openai_wire.failure, openai_wire.overflow


def usage(reply: Reply, used: Usage) -> dict[str, Any]:
    """The usage object: input includes what was cached."""
    if reply.raw_usage is not None:
        return reply.raw_usage
    return {
        "input_tokens": used.total_input,
        "input_tokens_details": {
            "cached_tokens": used.cache_read,
            "cache_write_tokens": used.cache_write_5m + used.cache_write_1h,
        },
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.total_input + used.output,
    }


def whole(reply: Reply, request: Request, used: Usage) -> dict[str, Any]:
    """The body of an answer that does not stream."""
    output: list[dict[str, Any]] = [_message(reply.text)] if reply.text else []
    output += [_call(call, request, n) for n, call in enumerate(reply.tool_calls)]
    return _response(reply, request, used, output)


def stream(reply: Reply, request: Request, used: Usage) -> Iterator[Piece]:
    """The events of an answer that streams, gates and delays in their places."""
    number, output, text = -1, [], ""

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        body = json.dumps({"type": kind, "sequence_number": number, **fields}, ensure_ascii=False)
        return f"event: {kind}\ndata: {body}\n\n".encode()

    begun = _response(reply, request, used, []) | {"status": "in_progress", "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    if reply.text:
        yield event("response.output_item.added", output_index=0, item=_message("", "in_progress"))
        empty = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **place, part=empty)
    for part in reply.parts:
        if isinstance(part, Gate | Delay):
            yield part
        elif isinstance(part, StreamError):
            yield event("error", code=part.type, message=part.message, param=None)
            return
        elif isinstance(part, str):
            text += part
            yield event("response.output_text.delta", **place, delta=part, logprobs=[])
    if reply.text:
        yield event("response.output_text.done", **place, text=text, logprobs=[])
        output.append(_message(text))
        yield event("response.output_item.done", output_index=0, item=output[0])
    for n, call in enumerate(reply.tool_calls):
        item, index = _call(call, request, n), len(output)
        opening = item | {"arguments": "", "status": "in_progress"}
        yield event("response.output_item.added", output_index=index, item=opening)
        for fragment in fragments(call):
            yield event(
                "response.function_call_arguments.delta",
                item_id=item["id"],
                output_index=index,
                delta=fragment,
            )
        yield event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    if not reply.no_end:
        last = _response(reply, request, used, output)
        yield event(f"response.{last['status']}", response=last)


def _response(
    reply: Reply, request: Request, used: Usage, output: list[dict[str, Any]]
) -> dict[str, Any]:
    cut = reply.stop == "length"
    return {
        "id": f"resp_{request.number}",
        "object": "response",
        "created_at": request.at_ms // 1000,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": request.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage(reply, used) if reply.tells_usage else None,
    }


def _message(text: str, status: str = "completed") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _call(call: Call, request: Request, n: int) -> dict[str, Any]:
    identity = call_id(call, request, n)
    return {
        "type": "function_call",
        "id": f"fc_{identity}",
        "call_id": identity,
        "name": call.name,
        "arguments": arguments(call),
        "status": "completed",
    }
