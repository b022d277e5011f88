"""Anthropic messages and their counting (https://docs.anthropic.com/en/api/messages); wires facts 2.1."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from metering_proxy.pricing import Usage
from metering_proxy.wires import answers, members, numbers
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import Document, invalid, read
from metering_proxy.wires.numbers import natural, nonsense, reported
from metering_proxy.wires.openai_chat import FLOOR_TOKENS
from metering_proxy.wires.survey import Survey, survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

# Tools that run in the caller. A search has a price, and a bound where `max_uses` gives it one; any other typed
# tool runs at the provider and costs what no token count bounds.
_CALLERS_TOOLS = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_SEARCH = "web_search_"
# What multiplies the price, or costs besides tokens.
_UNMETERED = ("mcp_servers", "container", "inference_geo", "speed")


class AnthropicMessages:
    """See wire.Wire."""

    name = "anthropic_messages"
    shape: Shape = "anthropic"
    operation = "chat"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        found = _surveyed(document, len(body))
        limit = numbers.count(document, "max_tokens")
        if limit is None:
            raise invalid("max_tokens is required", "max_tokens")
        for name in _UNMETERED:
            if document.get(name):
                raise members.not_metered(name)
        _check_edits(document)
        searches = _searches(document.get("tools"))
        found.opaque = found.opaque or searches > 0
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="chat",
            survey=found,
            stream=numbers.flag(document, "stream"),
            limit=limit,
            limit_at="max_tokens",
            floor=_thinking(document, limit) + FLOOR_TOKENS,
            tier=None,  # whatever it asks for, the account may have it served where that costs more
            searches=searches,
            strange=members.strange(document, self.name),
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Reader(for_an_hour=ask is not None and ask.survey.cached_1h)


class AnthropicCount:
    """See wire.Wire. Counting costs nothing, and is a request like any other."""

    name = "anthropic_count_tokens"
    shape: Shape = "anthropic"
    operation = "count_tokens"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        found = _surveyed(document, len(body))
        strange = members.strange(document, self.name)
        return Ask(document, numbers.model(document), "chat", found, free=True, strange=strange)

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Counted()


class _Counted:
    """Reads nothing: whatever was counted, nothing was used."""

    telling: re.Pattern[bytes] | None = None

    def __init__(self) -> None:
        self.found = Found(usage=Usage(), finished=True)

    def event(self, data: bytes) -> bool:
        return False

    def whole(self, body: bytes) -> None:
        pass


def _surveyed(document: Document, body_bytes: int) -> Survey:
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise invalid("messages must be a list that is not empty", "messages")
    parts = [messages, document.get("system"), _cache(document)]
    return survey(body_bytes, parts, document.get("tools"))


def _cache(document: Document) -> dict[str, Any]:
    """A cache_control of the request itself, in the form in which parts carry it."""
    return {"cache_control": document.get("cache_control")}


def _searches(tools: Any) -> int:
    """How often the provider may search. Raises `invalid` for what runs there without a bound."""
    most = 0
    for tool in tools if isinstance(tools, list) else []:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if not isinstance(kind, str) or kind.startswith(_CALLERS_TOOLS):
            continue
        uses = tool.get("max_uses")
        if not kind.startswith(_SEARCH) or type(uses) is not int or not 1 <= uses <= 100:
            raise invalid(f"a tool of type {kind} cannot be metered here without max_uses", "tools")
        most += uses
    return most


def _check_edits(document: Document) -> None:
    """Raises `invalid` for an edit that does more than leave something out: to compact is a call of its own."""
    management = document.get("context_management")
    if isinstance(management, dict) and not management.keys() <= {"edits"}:
        raise members.not_metered("context_management")
    edits = at(management, "edits")
    for edit in edits if isinstance(edits, list) else [edits] if edits else []:
        if not str(at(edit, "type")).startswith("clear_"):
            raise members.not_metered("context_management")


def _thinking(document: Document, limit: int) -> int:
    """The thinking budget, which the token limit must stay above."""
    thinking = document.object("thinking")
    if thinking is None:
        return 0
    budget = numbers.count(thinking, "budget_tokens")
    return min(budget or 0, limit)


_COUNTS = ("output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_SPLIT = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_CACHE = ("cache_creation_input_tokens", "cache_read_input_tokens")
_TELLING = re.compile(rb'"type"\s*:\s*"(?:message_|error)')
# Where it was served, if that costs as much as anywhere.
_ANYWHERE = frozenset(("", "global", "not_available"))


class _Reader:
    telling: re.Pattern[bytes] | None = _TELLING

    def __init__(self, *, for_an_hour: bool) -> None:
        self.found = Found()
        self._seen: dict[str, Any] = {}
        self._for_an_hour = for_an_hour
        self._is_counted = False  # its output was counted, and not only begun

    def event(self, data: bytes) -> bool:
        event = self.found.event(data)
        if event is not None:
            self._event(event)
        return False

    def whole(self, body: bytes) -> None:
        answer = answers.read(body)
        self.found.judge(answer, "content", "usage")
        if answer is None:
            return
        self._message(answer)
        self.found.finished = not self.found.failed and "output_tokens" in self._seen
        content = answer.get("content")
        for block in content if isinstance(content, list) else []:
            self.found.text_bytes += _text_bytes(block)

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "content_block_start" | "content_block_delta":
                said = event.get("delta") or event.get("content_block")
                self.found.text_bytes += _text_bytes(said)
            case "message_start":
                self._message(event.get("message"))
            case "message_delta":
                self._counted(event.get("usage") or at(event, "delta.usage"))
                ended = bool(at(event, "delta.stop_reason"))
                self.found.finished = self.found.finished or (ended and self._is_counted)
            case "message_stop":
                self._counted(event.get("usage"))
                self.found.finished = self._is_counted
            case kind if kind == "error" or event.get("error"):
                self.found.fails(event.get("error"))

    def _counted(self, usage: Any) -> None:
        """What it says when its output has been counted."""
        self._usage(usage)
        self._is_counted = self._is_counted or at(usage, "output_tokens") is not None

    def _message(self, message: Any) -> None:
        model = at(message, "model")
        if isinstance(model, str) and model:
            self.found.model = model
        self._usage(at(message, "usage"))

    def _usage(self, usage: Any) -> None:
        """Values are cumulative: the last one of each field counts, but 0 does not replace more than 0."""
        if not isinstance(usage, dict):
            return
        if _moved_to_cache(usage, self._seen):
            self._seen.pop("input_tokens")
        split = usage.pop("cache_creation", None)
        numbers.merge(self._seen, usage)
        self._split(split, reported(usage.get("cache_creation_input_tokens")))
        self.found.tier = _tier(self._seen)
        self.found.usage = _buckets(self._seen, for_an_hour=self._for_an_hour)

    def _split(self, split: Any, written: int | None) -> None:
        """Writes by their lifetime. They may move from one to the other; together they are what was `written`."""
        parts = {name: natural(at(split, name)) for name in _SPLIT if at(split, name) is not None}
        if not any(parts.values()):
            return
        if written and sum(parts.values()) > written:
            hour = min(written, parts.get(_SPLIT[1], 0))
            parts = {_SPLIT[0]: written - hour, _SPLIT[1]: hour}
        before = self._seen.get("cache_creation")
        self._seen["cache_creation"] = {**(before if isinstance(before, dict) else {}), **parts}


def _moved_to_cache(usage: dict[str, Any], seen: dict[str, Any]) -> bool:
    """Whether an input of 0 takes the place of one that was told before anybody looked into the cache."""
    before = natural(seen.get("input_tokens"))
    if reported(usage.get("input_tokens")) != 0 or any(natural(seen.get(name)) for name in _CACHE):
        return False
    return 0 < before <= sum(natural(usage.get(name)) for name in _CACHE)


def _buckets(seen: dict[str, Any], *, for_an_hour: bool) -> Usage | None:
    """What was said up to now; None where it does not say the input, or says what is no count."""
    if reported(seen.get("input_tokens")) is None or any(
        nonsense(seen.get(name)) for name in _COUNTS
    ):
        return None
    seen = _whole(seen)
    written = natural(seen.get("cache_creation_input_tokens"))
    split = seen.get("cache_creation")
    split = split if isinstance(split, dict) else {}
    hour = natural(split.get("ephemeral_1h_input_tokens"))
    minutes = natural(split.get("ephemeral_5m_input_tokens"))
    # The total may exceed the split: the remainder lives for an hour where the request asked for that.
    remainder = max(0, written - hour - minutes)
    hour, minutes = (hour + remainder, minutes) if for_an_hour else (hour, minutes + remainder)
    return Usage(
        input=natural(seen.get("input_tokens")),
        cache_read=natural(seen.get("cache_read_input_tokens")),
        cache_write_5m=minutes,
        cache_write_1h=hour,
        output=natural(seen.get("output_tokens")),
        reasoning=natural(at(seen, "output_tokens_details.thinking_tokens")),
        web_searches=natural(at(seen, "server_tool_use.web_search_requests")),
        tier=_tier(seen),
    )


def _tier(seen: dict[str, Any]) -> str | None:
    """What multiplies its price: the place where it was served, if that does, else the service tier."""
    place, tier = seen.get("inference_geo"), seen.get("service_tier")
    if isinstance(place, str) and place.lower() not in _ANYWHERE:
        return place.lower()
    return tier.lower() if isinstance(tier, str) else None


def _whole(seen: dict[str, Any]) -> dict[str, Any]:
    """With the passes that the sums beside them leave out, such as a compaction; never less than those sums."""
    passes = seen.get("iterations")
    rows = [row for row in passes if isinstance(row, dict)] if isinstance(passes, list) else []
    if not rows:
        return seen
    splits = [row.get("cache_creation") for row in rows]
    split = _summed(seen.get("cache_creation"), splits, _SPLIT)
    return {**seen, **_summed(seen, rows, ("input_tokens", *_COUNTS)), "cache_creation": split}


def _summed(told_of_all: Any, rows: Sequence[Any], names: Sequence[str]) -> dict[str, int]:
    return {
        name: max(natural(at(told_of_all, name)), sum(natural(at(row, name)) for row in rows))
        for name in names
    }


def _text_bytes(block: Any) -> int:
    if not isinstance(block, dict):
        return 0
    texts = [block.get(name) for name in ("text", "thinking", "partial_json")]
    found = sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
    if isinstance(block.get("input"), dict) and block["input"]:
        found += len(orjson.dumps(block["input"]))
    return found
