"""OpenAI chat completions: requests written, streams put together. Many servers speak it, few exactly."""

import json
from collections.abc import Iterator
from typing import Any

import orjson

from agent.errors import broken, in_stream
from agent.providers.wire import Message, Prompt, Reply, Runes, ToolSpec, Wanted
from infra.kit.sse import Event

_STOPS = {
    "stop": "end", "tool_calls": "calls", "function_call": "calls",
    "length": "length", "content_filter": "refusal",
}  # fmt: skip


class OpenAIChat:
    """The wire format `openai`."""

    path = "/v1/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """See `Wire.headers`."""
        return {"authorization": f"Bearer {key}", "content-type": "application/json"}

    def body(self, prompt: Prompt, model: str) -> bytes:
        """See `Wire.body`."""
        messages: list[dict[str, Any]] = [{"role": "system", "content": prompt.system}]
        for message in prompt.messages:
            messages.extend(_written(message))
        body: dict[str, Any] = {
            "model": model,
            "messages": messages,
            # OpenAI's own newer models refuse the old name, many other servers do not know the new one.
            "max_completion_tokens"
            if model.startswith("openai/")
            else "max_tokens": prompt.max_tokens,
            "stream": True,
        }
        if prompt.temperature is not None:
            body["temperature"] = prompt.temperature
        if prompt.frequency_penalty is not None:
            body["frequency_penalty"] = prompt.frequency_penalty
        if prompt.tools:
            body["tools"] = [_tool(spec) for spec in prompt.tools]
            if not prompt.may_call:
                body["tool_choice"] = "none"
        return orjson.dumps(body)

    def assembler(self) -> "Stream":
        """See `Wire.assembler`."""
        return Stream()


def _written(message: Message) -> Iterator[dict[str, Any]]:
    if message.results:
        for result in message.results:
            yield {"role": "tool", "tool_call_id": result.id, "content": result.text}
        return
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        written["content"] = message.text or None
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()},
            }
            for call in message.calls
        ]
    yield written


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": spec.name, "description": spec.description, "parameters": spec.parameters,
        },
    }  # fmt: skip


class Stream:
    """Puts a chunked completion together, by index and by id, whichever the server keeps straight."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[Wanted] = []
        self._by_index: dict[int, Wanted] = {}
        self._finish: str | None = None
        self._done = False
        self._runes = Runes()

    def feed(self, event: Event) -> Iterator[str]:
        """See `Assembler.feed`."""
        if event.data.strip() == "[DONE]":
            self._done = True
            return
        chunk = _parsed(event.data)
        if chunk is None:
            return
        if isinstance(error := chunk.get("error"), dict):
            kind = error.get("code") or error.get("type") or ""
            raise in_stream(str(kind), str(error.get("message") or ""))
        for choice in (chunk.get("choices") or [])[:1]:
            yield from self._take(choice.get("delta") or choice.get("message") or {})
            self._finish = choice.get("finish_reason") or self._finish

    def whole(self, body: bytes) -> Iterator[str]:
        """See `Assembler.whole`: one completion has the shape of one chunk that says everything."""
        yield from self.feed(Event(body.decode("utf-8", "replace")))
        self._done = True

    def reply(self) -> Reply:
        """See `Assembler.reply`."""
        if not self._done and self._finish is None:
            raise broken("stream_cut")
        stop = "calls" if self._calls else _STOPS.get(self._finish or "stop", "other")
        if rest := self._runes.rest():
            self._text.append(rest)
        return Reply("".join(self._text), self._calls, stop)

    def _take(self, delta: dict[str, Any]) -> Iterator[str]:
        said = delta.get("content") or delta.get("refusal")
        if isinstance(said, str) and (text := self._runes.feed(said)):
            self._text.append(text)
            yield text
        for part in delta.get("tool_calls") or []:
            if isinstance(part, dict):
                self._take_call(part)

    def _take_call(self, part: dict[str, Any]) -> None:
        function = part.get("function") or {}
        identity, name = part.get("id") or "", function.get("name") or ""
        call = self._find(part.get("index"), identity, name)
        call.id = call.id or identity
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            call.arguments = json.dumps(arguments)
        elif isinstance(arguments, str):
            call.arguments += arguments

    def _find(self, index: object, identity: str, name: str) -> Wanted:
        """The call that a fragment belongs to.

        Some servers send every call with index 0 and tell them apart by id (mcowger/plexus#691),
        some without any index or id (can1357/oh-my-pi#1880): then a second name begins a call.
        """
        known = self._by_index.get(index) if isinstance(index, int) else None
        if known is None and not isinstance(index, int):
            same = [call for call in self._calls if identity and call.id == identity]
            known = same[-1] if same else (self._calls[-1] if self._calls and not name else None)
        other_id = known is not None and bool(identity) and bool(known.id) and identity != known.id
        other_name = known is not None and bool(name and known.name) and not identity
        if known is None or other_id or (other_name and _complete(known.arguments)):
            known = Wanted()
            self._calls.append(known)
        if isinstance(index, int):
            self._by_index[index] = known
        return known


def _complete(arguments: str) -> bool:
    try:
        orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return False
    return True


def _parsed(data: str) -> dict[str, Any] | None:
    """A chunk; None for what is no JSON object (keep-alives, see facts: wires 2.5).

    The standard library reads what orjson refuses: halves of a surrogate pair in two chunks.
    """
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
