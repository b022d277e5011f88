"""Answers as small as a public report about them is, and what is found in them, however they are cut."""

import json
from collections.abc import Mapping
from typing import Any

from metering_proxy.pricing import Usage
from metering_proxy.providers.kinds import kinds
from metering_proxy.tenant_side.tee import Tee
from metering_proxy.wires import paths
from metering_proxy.wires.wire import Found

Json = Mapping[str, Any]


def events(*given: Json, end: str = "") -> bytes:
    """A stream of these, with the line that ends it on some wires."""
    told = [*map(json.dumps, given), *([end] if end else [])]
    return "".join(f"data: {data}\n\n" for data in told).encode()


def chat(*chunks: Json) -> bytes:
    """A stream of chat chunks."""
    return events(*chunks, end="[DONE]")


def word(text: str = "hello", **more: Any) -> Json:
    """A chunk that says something."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}


def stop(reason: str = "stop", **more: Any) -> Json:
    """The chunk that ends a choice."""
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}


def used(**usage: Any) -> Json:
    """A chunk of nothing but usage."""
    return {"choices": [], "usage": usage}


def tokens(prompt: int, completion: int, total: int, **more: Any) -> dict[str, Any]:
    """A chat's usage."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def inside(**details: Any) -> dict[str, Any]:
    """What a chat's usage says about its input."""
    return {"prompt_tokens_details": details}


def whole(usage: Json | None, text: Any = "hello", **more: Any) -> bytes:
    """A chat's answer in one piece."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": usage, **more}).encode()


def begun(**usage: Any) -> Json:
    """Anthropic's first event."""
    return {"type": "message_start", "message": {"model": "m", "usage": usage}}


def ended(**usage: Any) -> Json:
    """Anthropic's event with the end of the answer and its usage."""
    return halted(usage=usage)


def halted(**more: Any) -> Json:
    """Anthropic's event with the end of the answer, and nothing of its usage unless that is in `more`."""
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **more}


def said(text: str = "hello") -> Json:
    """Anthropic's event with a piece of text."""
    return {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}


def messages(*given: Json) -> bytes:
    """A stream of Anthropic's events, up to the last one."""
    return events(*given, {"type": "message_stop"})


def read(wire: str, kind: str, body: bytes, size: int) -> Found:
    """What is found in an answer of that kind of provider that comes in pieces of `size` bytes."""
    framing = "events" if body.startswith(b"data:") else "whole"
    reader = paths.WIRES[wire].reader(None, kinds()[kind].dialect)
    tee = Tee(reader, framing=framing, encoding="", strip=False)  # type: ignore[arg-type]
    out = b"".join(tee.feed(body[at : at + size]) for at in range(0, len(body), size)) + tee.end()
    tee.conclude()
    assert out == body
    return reader.found


def check(wire: str, kind: str, body: bytes, expected: Usage | None) -> None:
    """That the answer is read as `expected`; None: it does not tell all that it used, so it is estimated."""
    for size in (7, len(body)):
        found = read(wire, kind, body, size)
        assert not found.failed
        assert found.reported_usage == expected
