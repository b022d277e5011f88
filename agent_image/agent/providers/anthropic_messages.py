"""Anthropic messages: requests written, streams put together by block."""

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from agent.errors import broken, in_stream
from agent.providers.wire import Message, Prompt, Reply, Runes, Wanted
from infra.kit.sse import Event

_STOPS = {
    "end_turn": "end", "stop_sequence": "end", "tool_use": "calls",
    "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal",
}  # fmt: skip


class AnthropicMessages:
    """The wire format `anthropic`."""

    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """See `Wire.headers`."""
        return {
            "x-api-key": key,
            "anthropic-version": "2023-06-01",
            "content-type": "application/json",
        }

    def body(self, prompt: Prompt, model: str) -> bytes:
        """See `Wire.body`. The cache mark says: up to here it is the same in every call."""
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": prompt.max_tokens,
            "system": [
                {"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}
            ],
            "messages": [_written(message) for message in prompt.messages],
            "stream": True,
        }
        if prompt.temperature is not None:
            body["temperature"] = prompt.temperature
        if prompt.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": t.parameters}
                for t in prompt.tools
            ]
            if not prompt.may_call:
                body["tool_choice"] = {"type": "none"}
        return orjson.dumps(body)

    def assembler(self) -> "Stream":
        """See `Wire.assembler`."""
        return Stream()


def _written(message: Message) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for result in message.results:
        block = {"type": "tool_result", "tool_use_id": _legal(result.id), "content": result.text}
        blocks.append({**block, "is_error": True} if result.failed else block)
    # The API refuses text blocks without a visible character.
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    for call in message.calls:
        blocks.append(
            {"type": "tool_use", "id": _legal(call.id), "name": call.name, "input": call.arguments}
        )
    return {"role": message.role, "content": blocks}


def _legal(identity: str) -> str:
    """A call's id as this API takes it; another provider, in earlier turns, may have used other signs."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", identity)


class Stream:
    """Puts a stream of blocks together; fragments of a call carry no id, only their block's index."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, Wanted] = {}
        self._stop: str | None = None
        self._runes = Runes()

    def feed(self, event: Event) -> Iterator[str]:
        """See `Assembler.feed`. Events and blocks of unknown types are passed over."""
        try:
            body = json.loads(event.data)
        except ValueError:
            return
        if not isinstance(body, dict):
            return
        kind, index = body.get("type"), body.get("index", 0)
        if kind == "error":
            error = body.get("error") or {}
            raise in_stream(str(error.get("type") or ""), str(error.get("message") or ""))
        if kind == "content_block_start":
            yield from self._begin(index, body.get("content_block") or {})
        elif kind == "content_block_delta":
            yield from self._take(index, body.get("delta") or {})
        elif kind == "message_delta":
            self._stop = (body.get("delta") or {}).get("stop_reason") or self._stop

    def whole(self, body: bytes) -> Iterator[str]:
        """See `Assembler.whole`."""
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise broken("stream_cut") from None
        for index, block in enumerate(found.get("content") or []):
            yield from self._begin(index, block)
        self._stop = found.get("stop_reason")

    def reply(self) -> Reply:
        """See `Assembler.reply`."""
        if self._stop is None:
            raise broken("stream_cut")
        if rest := self._runes.rest():
            self._text.append(rest)
        calls = [self._calls[index] for index in sorted(self._calls)]
        stop = "calls" if calls else _STOPS.get(self._stop, "other")
        return Reply("".join(self._text), calls, stop)

    def _begin(self, index: int, block: dict[str, Any]) -> Iterator[str]:
        if block.get("type") == "tool_use":
            given = block.get("input")
            text = json.dumps(given) if given else ""
            self._calls[index] = Wanted(block.get("id") or "", block.get("name") or "", text)
        elif block.get("type") == "text":
            yield from self._say(block.get("text") or "")

    def _take(self, index: int, delta: dict[str, Any]) -> Iterator[str]:
        if delta.get("type") == "text_delta":
            yield from self._say(delta.get("text") or "")
        elif delta.get("type") == "input_json_delta" and index in self._calls:
            self._calls[index].arguments += delta.get("partial_json") or ""

    def _say(self, said: str) -> Iterator[str]:
        if text := self._runes.feed(said):
            self._text.append(text)
            yield text
