"""OpenAI chat completions, `POST /v1/chat/completions` (https://platform.openai.com/docs/api-reference/chat)."""

import re
from typing import Any

from metering_proxy.wires import answers, members, numbers, openai_usage
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import Document, Edit, invalid, read
from metering_proxy.wires.survey import survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

FLOOR_TOKENS = 256
LIMITS = ("max_completion_tokens", "max_tokens")
# Members that cost money which no token count shows.
_UNMETERED = ("web_search_options",)
_ASKS_USAGE = frozenset(("include_usage",))
# Tools that run in the caller. Of any other kind the provider runs them, and they cost what nothing here tells.
_CALLERS_TOOLS = frozenset(("function", "custom"))


class OpenAiChat:
    """See wire.Wire."""

    name = "openai_chat"
    shape: Shape = "openai"
    operation = "chat"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        messages = document.get("messages")
        if not isinstance(messages, list) or not messages:
            raise invalid("messages must be a list that is not empty", "messages")
        for name in _UNMETERED:
            if document.get(name) is not None:
                raise members.not_metered(name)
        _check_tools(document.get("tools"))
        limit_field, limit = _limit(document)
        stream = numbers.flag(document, "stream")
        parts = [messages, document.get("functions")]
        found = survey(len(body), parts, document.get("tools"))
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="chat",
            survey=found,
            stream=stream,
            limit=limit,
            limit_at=limit_field,
            floor=FLOOR_TOKENS,
            choices=numbers.count(document, "n", most=numbers.MOST_CHOICES) or 1,
            extra_output=_prediction_bytes(document),
            tier=numbers.text(document, "service_tier"),
            usage_edits=_usage_edits(document) if stream else (),
            audio_output=_speaks(document.get("modalities")),
            strange=members.strange(document, self.name),
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Reader(dialect)


def _limit(document: Document) -> tuple[str | None, int | None]:
    found = [
        (name, value) for name in LIMITS if (value := numbers.count(document, name)) is not None
    ]
    if len(found) > 1:
        raise invalid("max_tokens and max_completion_tokens: give one of them", LIMITS[1])
    return found[0] if found else (None, None)


def _usage_edits(document: Document) -> tuple[Edit, ...]:
    """The edit that asks for the usage chunk where the caller did not."""
    options = document.object("stream_options")
    if options is None:
        return (document.put("stream_options", {"include_usage": True}),)
    members.check_case(options.members, _ASKS_USAGE, _ASKS_USAGE)
    if numbers.flag(options, "include_usage"):
        return ()
    return (options.put("include_usage", True),)


def _check_tools(tools: Any) -> None:
    """Raises `invalid` for a tool that the provider runs: a search, a `builtin_function`, `$web_search`."""
    if tools is None:
        return
    if not isinstance(tools, list):
        raise invalid("tools must be a list", "tools")
    for tool in tools:
        if not isinstance(tool, dict):
            raise invalid("a tool must be an object", "tools")
        function = tool.get("function")
        named = function.get("name") if isinstance(function, dict) else None
        kind = str(tool.get("type", "function" if isinstance(function, dict) else None))
        # The name of a caller's function begins with no such sign; those of built-in ones do.
        if kind not in _CALLERS_TOOLS or (isinstance(named, str) and named.startswith("$")):
            raise invalid(f"a tool of type {kind} cannot be metered here", "tools")


def _speaks(modalities: Any) -> bool:
    return isinstance(modalities, list) and "audio" in modalities


def _prediction_bytes(document: Document) -> int:
    """Rejected predictions count as output beyond the limit; each of their bytes is a token at most."""
    member = document.members.get("prediction")
    if member is None or member.value is None:
        return 0
    return len(document.text[member.start : member.end].encode())


# What ends a choice, says what was used, or that it went wrong; a model and its tier are said from the beginning.
# All begin with a quote, for which a search is four times as fast. [DONE] is no object, so it is read anyway.
_TELLING = re.compile(rb'"(?:usage"\s*:\s*\{|error"|base_resp"|success"|finish_reason"\s*:\s*")')
_WORDS = ("content", "refusal", "reasoning_content", "reasoning")
# Ends of a choice that are none of the model's: whoever passed it on had lost it.
_BROKEN = frozenset(("error", "network_error", "insufficient_system_resource"))


class _Reader:
    telling: re.Pattern[bytes] | None = _TELLING

    def __init__(self, dialect: Dialect) -> None:
        self.found = Found()
        self._dialect = dialect
        self._seen: dict[str, Any] = {}
        self._stopped = False

    def event(self, data: bytes) -> bool:
        if data == b"[DONE]":
            self.found.finished = True
            return False
        chunk = self.found.event(data)
        if chunk is None:
            return False
        said, choices = self._read(chunk), _choices(chunk)
        if _is_error(chunk) or any(map(_failed, choices)):
            self.found.fails(chunk.get("error"))
        words = sum(_text_bytes(choice.get("delta")) for choice in choices)
        self.found.text_bytes += words
        self._stopped = self._stopped or any(choice.get("finish_reason") for choice in choices)
        usage_only = isinstance(chunk.get("usage"), dict) and not chunk.get("choices")
        if said or usage_only:  # some tell it on the last chunk, and nothing comes after it
            self.found.finished = self._stopped or usage_only
        elif words:  # it was not the last
            self.found.finished = False
        return usage_only

    def whole(self, body: bytes) -> None:
        answer = answers.read(body)
        self.found.judge(answer, "choices", "usage")
        if answer is None:
            return
        choices = _choices(answer)
        self.found.failed = self.found.failed or _is_error(answer) or any(map(_failed, choices))
        self._read(answer)
        self.found.finished = bool(choices)
        for choice in choices:
            self.found.text_bytes += _text_bytes(choice.get("message"))

    def _read(self, answer: dict[str, Any]) -> bool:
        """Whether it says what was used."""
        if isinstance(answer.get("service_tier"), str):
            self.found.tier = answer["service_tier"].lower()
        if isinstance(answer.get("model"), str) and answer["model"]:
            self.found.model = answer["model"]
        usage = openai_usage.find(answer, self._dialect)
        if usage is None:
            return False
        # Some tell it in bits, and end with one that nobody filled in.
        numbers.merge(self._seen, usage)
        reading = openai_usage.read(self._seen, self.found.tier, self._dialect)
        if reading is not None:
            self.found.usage, self.found.doubt = reading.usage, reading.doubt
            self.found.stated = openai_usage.stated_cost(self._seen, self._dialect)
        elif openai_usage.is_garbled(usage):
            self.found.usage = self.found.stated = None
        return reading is not None


def _choices(answer: dict[str, Any]) -> list[dict[str, Any]]:
    choices = answer.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def _is_error(answer: dict[str, Any]) -> bool:
    """Whether that is no answer but an error, in the ways in which servers say so under a status of 200."""
    if answer.get("error") or answer.get("object") == "error" or answer.get("success") is False:
        return True
    if answer.get("base_resp") and numbers.natural(at(answer, "base_resp.status_code")) > 0:
        return True
    return bool(answer.get("x_groq") and at(answer, "x_groq.error"))


def _failed(choice: dict[str, Any]) -> bool:
    """Whether it went wrong there, behind whoever passed it on."""
    return choice.get("finish_reason") in _BROKEN or bool(choice.get("error"))


def _text_bytes(message: Any) -> int:
    """Bytes of text that a model made: words, refusals, thoughts, what it spoke, arguments of calls."""
    if not isinstance(message, dict):
        return 0
    said = [message.get(name) for name in _WORDS]
    calls = message.get("tool_calls")
    functions = [at(call, "function") for call in calls] if isinstance(calls, list) else []
    for function in (*functions, message.get("function_call")):
        if function:
            said += [at(function, "name"), at(function, "arguments")]
    if message.get("audio") is not None:
        said.append(at(message["audio"], "transcript"))
    return sum([_bytes_of(part) for part in said if part])


def _bytes_of(said: Any) -> int:
    """Of a text, or of the texts in a list of parts."""
    if isinstance(said, str):
        return len(said.encode("utf-8", "replace"))
    parts = said if isinstance(said, list) else []
    return sum(_bytes_of(at(part, "text")) + _bytes_of(at(part, "thinking")) for part in parts)
