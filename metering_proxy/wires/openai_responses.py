"""OpenAI Responses, `POST /v1/responses` (https://platform.openai.com/docs/api-reference/responses); facts 2.3.

Only the call that makes a response has a meter: reading a stored one, or one that runs in the background, has
none and does not exist here.
"""

import re
from typing import Any

from metering_proxy.wires import answers, members, numbers, openai_usage
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import Document, invalid, read
from metering_proxy.wires.numbers import natural
from metering_proxy.wires.openai_chat import FLOOR_TOKENS
from metering_proxy.wires.survey import Survey, survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

# Input that is not in the body; the context window bounds it.
_HIDDEN = ("previous_response_id", "conversation", "prompt")
_CALLERS_TOOLS = frozenset(
    ("function", "custom", "local_shell", "apply_patch", "computer_use_preview")
)
_SEARCHES = frozenset(("web_search", "web_search_preview"))
_ENDINGS = frozenset(
    ("response.completed", "response.incomplete", "response.failed", "response.cancelled",
     "response.done")
)  # fmt: skip


class OpenAiResponses:
    """See wire.Wire."""

    name = "openai_responses"
    shape: Shape = "openai"
    operation = "chat"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        if numbers.flag(document, "background"):
            raise invalid("a response in the background cannot be metered here", "background")
        searches = _searches(document)
        found = _surveyed(document, len(body))
        found.opaque = found.opaque or searches > 0
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="chat",
            survey=found,
            stream=numbers.flag(document, "stream"),
            limit=numbers.count(document, "max_output_tokens"),
            limit_at="max_output_tokens",
            floor=FLOOR_TOKENS,
            tier=numbers.text(document, "service_tier"),
            searches=searches,
            strange=members.strange(document, self.name),
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Reader(dialect)


def _surveyed(document: Document, body_bytes: int) -> Survey:
    given = document.get("input")
    if given is not None and not isinstance(given, str | list):
        raise invalid("input must be text or a list of items", "input")
    found = survey(body_bytes, [given], document.get("tools"))
    if any(document.get(name) is not None for name in _HIDDEN):
        found.opaque = True
    return found


def _searches(document: Document) -> int:
    """How often the provider may search. Raises `invalid` for what runs there without a bound."""
    tools = document.get("tools")
    hosted = [
        str(tool.get("type"))
        for tool in (tools if isinstance(tools, list) else [])
        if isinstance(tool, dict) and str(tool.get("type")) not in _CALLERS_TOOLS
    ]
    for kind in hosted:
        if not kind.startswith(tuple(_SEARCHES)):
            raise invalid(f"a tool of type {kind} cannot be metered here", "tools")
    if not hosted:
        return 0
    most = numbers.count(document, "max_tool_calls", most=100)
    if most is None:
        raise invalid("a search needs max_tool_calls, which bounds its cost", "max_tool_calls")
    return most


_TELLING = re.compile(rb'"type"\s*:\s*"(?:error|response\.(?:[a-z]+"|output_item\.done))')


class _Reader:
    telling: re.Pattern[bytes] | None = _TELLING

    def __init__(self, dialect: Dialect) -> None:
        self.found = Found()
        self._dialect = dialect

    def event(self, data: bytes) -> bool:
        event = self.found.event(data)
        if event is None:
            return False
        kind = event.get("type")
        if kind in _ENDINGS:
            response = event.get("response")
            self._output(response, words=not at(response, "usage"))
            self._response(response)
            self.found.finished = self.found.usage is not None
            broken = kind == "response.failed" or at(event, "response.status") == "failed"
            self.found.failed = broken
            self.found.complaint = answers.word(at(event, "response.error"))
        elif kind in ("error", "response.error") or (kind is None and event.get("error")):
            self.found.fails(event.get("error") or event)
        elif kind == "response.created":
            self._begins(event.get("response"))
        elif kind == "response.output_item.done":
            self.found.searches += _is_search(event.get("item"))
        elif isinstance(event.get("delta"), str):
            self.found.text_bytes += len(event["delta"].encode("utf-8", "replace"))
        return False

    def whole(self, body: bytes) -> None:
        answer = answers.read(body)
        self._output(answer, words=True)
        self._response(answer)
        self.found.judge(answer, "output", "usage", "status")
        self.found.failed = self.found.failed or at(answer, "status") == "failed"
        self.found.finished = self.found.usage is not None

    def _output(self, response: Any, *, words: bool) -> None:
        """What the whole response has in it, whether it came in pieces before or not: searches, and `words`."""
        output = at(response, "output")
        items = output if isinstance(output, list) else []
        self.found.searches = max(self.found.searches, sum(map(_is_search, items)))
        if words:
            self.found.text_bytes = max(self.found.text_bytes, sum(map(_text_bytes, items)))

    def _begins(self, response: Any) -> None:
        """What it says of itself before it says what was used. Its tier may still be `auto` then."""
        model, tier = at(response, "model"), at(response, "service_tier")
        if isinstance(model, str) and model:
            self.found.model = model
        if isinstance(tier, str):
            self.found.tier = tier.lower()

    def _response(self, response: Any) -> None:
        """What the whole response says; its usage is null where it failed before it began."""
        self._begins(response)
        usage, tier = at(response, "usage"), at(response, "service_tier")
        if not isinstance(usage, dict):
            return
        tier = tier.lower() if isinstance(tier, str) else None
        reading = openai_usage.read(usage, tier, self._dialect)
        if reading is None:
            self.found.usage = None
            return
        told = at(response, "tool_usage.web_search.num_requests")
        searches = self.found.searches if told is None else natural(told)
        searches = max(searches, reading.usage.web_searches)
        self.found.usage, self.found.doubt = reading.usage.with_searches(searches), reading.doubt
        self.found.stated = openai_usage.stated_cost(usage, self._dialect)


def _is_search(item: Any) -> bool:
    """Whether it has a fee. To open a page that was found, or to look in it, has none and is of the same type."""
    action = at(item, "action.type")
    return at(item, "type") == "web_search_call" and action in (None, "search")


def _text_bytes(item: Any) -> int:
    """Bytes of text that a model made: words, refusals, summaries, arguments of calls."""
    texts = [at(item, "arguments"), at(item, "input"), at(item, "name")]
    for name in ("content", "summary"):
        parts = at(item, name)
        for part in parts if isinstance(parts, list) else []:
            texts += [at(part, "text"), at(part, "refusal")]
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
