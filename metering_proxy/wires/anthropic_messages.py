"""Anthropic messages, `POST /v1/messages` (https://docs.anthropic.com/en/api/messages); wires facts 2.1."""

from typing import Any

import orjson

from metering_proxy.pricing import Usage
from metering_proxy.wires import numbers
from metering_proxy.wires.document import Document, invalid, read
from metering_proxy.wires.numbers import natural
from metering_proxy.wires.openai_chat import FLOOR_TOKENS
from metering_proxy.wires.survey import survey
from metering_proxy.wires.wire import Ask, Found, Reader, Shape

# Tools that run in the caller; any other typed tool runs at the provider and costs what no token count bounds.
_CALLERS_TOOLS = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_UNMETERED = ("mcp_servers", "container")


class AnthropicMessages:
    """See wire.Wire."""

    name = "anthropic_messages"
    shape: Shape = "anthropic"
    path = "/v1/messages"
    operation = "chat"

    def read(self, body: bytes) -> Ask:
        """See wire.Wire."""
        document = read(body)
        messages = document.get("messages")
        if not isinstance(messages, list) or not messages:
            raise invalid("messages must be a list that is not empty", "messages")
        limit = numbers.count(document, "max_tokens")
        if limit is None:
            raise invalid("max_tokens is required", "max_tokens")
        for name in _UNMETERED:
            if document.get(name):
                raise invalid(f"{name} cannot be metered here", name)
        tools = document.get("tools")
        _callers_own(tools)
        found = survey(len(body), [messages, document.get("system"), _cache(document)], tools)
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="chat",
            survey=found,
            stream=numbers.flag(document, "stream"),
            limit=limit,
            limit_field="max_tokens",
            floor=_thinking(document, limit) + FLOOR_TOKENS,
            tier=None,  # `auto` or `standard_only`: neither is dearer than the price
        )

    def reader(self) -> Reader:
        """See wire.Wire."""
        return _Reader()


def _cache(document: Document) -> dict[str, Any]:
    """A cache_control of the request itself, in the form in which parts carry it."""
    return {"cache_control": document.get("cache_control")}


def _callers_own(tools: Any) -> None:
    for tool in tools if isinstance(tools, list) else []:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(kind, str) and not kind.startswith(_CALLERS_TOOLS):
            raise invalid(f"a tool of type {kind} cannot be metered here", "tools")


def _thinking(document: Document, limit: int) -> int:
    """The thinking budget, which the token limit must stay above."""
    thinking = document.object("thinking")
    if thinking is None:
        return 0
    budget = numbers.count(thinking, "budget_tokens")
    return min(budget or 0, limit)


class _Reader:
    def __init__(self) -> None:
        self.found = Found()
        self._seen: dict[str, Any] = {}

    def event(self, data: bytes) -> bool:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            return False
        if isinstance(event, dict):
            self._event(event)
        return False

    def whole(self, body: bytes) -> None:
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            return
        if not isinstance(answer, dict):
            return
        self._message(answer)
        self.found.finished = answer.get("type") == "message"
        content = answer.get("content")
        for block in content if isinstance(content, list) else []:
            self.found.text_bytes += _text_bytes(block)

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "content_block_delta":
                self.found.text_bytes += _text_bytes(event.get("delta"))
            case "message_start":
                message = event.get("message")
                if isinstance(message, dict):
                    self._message(message)
            case "message_delta":
                self._usage(event.get("usage"))
                delta = event.get("delta")
                ended = isinstance(delta, dict) and bool(delta.get("stop_reason"))
                self.found.finished = self.found.finished or ended
            case "message_stop":
                self.found.finished = True
            case "error":
                self.found.failed = True

    def _message(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("model"), str) and message["model"]:
            self.found.model = message["model"]
        self._usage(message.get("usage"))

    def _usage(self, usage: Any) -> None:
        """Values are cumulative: the last one of each field counts, but 0 does not replace more than 0."""
        if not isinstance(usage, dict):
            return
        for name, value in usage.items():
            if value is not None and not (value == 0 and self._seen.get(name)):
                self._seen[name] = value
        self.found.usage = _buckets(self._seen)


def _buckets(seen: dict[str, Any]) -> Usage:
    written = natural(seen.get("cache_creation_input_tokens"))
    split = seen.get("cache_creation")
    split = split if isinstance(split, dict) else {}
    hour = natural(split.get("ephemeral_1h_input_tokens"))
    minutes = natural(split.get("ephemeral_5m_input_tokens"))
    # The total may exceed the split: what is left over was written at the plain rate, five minutes.
    minutes += max(0, written - hour - minutes)
    tools = seen.get("server_tool_use")
    details = seen.get("output_tokens_details")
    tier = seen.get("service_tier")
    return Usage(
        input=natural(seen.get("input_tokens")),
        cache_read=natural(seen.get("cache_read_input_tokens")),
        cache_write_5m=minutes,
        cache_write_1h=hour,
        output=natural(seen.get("output_tokens")),
        reasoning=natural(details.get("thinking_tokens")) if isinstance(details, dict) else 0,
        web_searches=natural(tools.get("web_search_requests")) if isinstance(tools, dict) else 0,
        tier=tier if isinstance(tier, str) else None,
    )


def _text_bytes(block: Any) -> int:
    if not isinstance(block, dict):
        return 0
    texts = [block.get(name) for name in ("text", "thinking", "partial_json")]
    found = sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
    if isinstance(block.get("input"), dict):
        found += len(orjson.dumps(block["input"]))
    return found
