"""Gemini, `models/{model}:generateContent` and `:streamGenerateContent` (https://ai.google.dev/api); facts 2.4.

The model stands in the path, and members may be written in either of two ways (`maxOutputTokens`,
`max_output_tokens`), as Google's own servers take both.
"""

import re
from typing import Any
from urllib.parse import parse_qs

import orjson

from metering_proxy.pricing import PLAIN_TIERS, Usage
from metering_proxy.wires import answers, members, numbers
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import Document, invalid, read
from metering_proxy.wires.numbers import natural, reported
from metering_proxy.wires.openai_chat import FLOOR_TOKENS
from metering_proxy.wires.survey import survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

_UPPER = re.compile(r"[A-Z]")
# Functions run in the caller. Searches have a price, and how many there may be stands beside it; what else Google
# runs has neither.
_CALLERS_TOOL = frozenset(("functionDeclarations", "function_declarations"))
_SEARCH = frozenset(("googleSearch", "google_search"))


# One of these is in every answer.
_PARTS = ("candidates", "promptFeedback", "usageMetadata")
_COUNTS = ("candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
# A tier in Vertex's words; what else it says there, such as that it was bought in advance, costs as the plain one.
_TRAFFIC = {
    "ON_DEMAND": "standard", "ON_DEMAND_PRIORITY": "priority", "ON_DEMAND_FLEX": "flex", "FLEX": "flex",
}  # fmt: skip
_SAID = frozenset(("promptTokenCount", *_COUNTS))


class Gemini:
    """See wire.Wire: one for whole answers, one for streams."""

    shape: Shape = "gemini"
    operation = "generate_content"

    def __init__(self, name: str, *, stream: bool) -> None:
        self.name, self._stream = name, stream

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        contents = document.get("contents")
        if not isinstance(contents, list | dict) or not contents:
            raise invalid("contents must be a list that is not empty", "contents")
        system = _member(document, "systemInstruction")
        searches = _searches(document.get("tools"))
        found = survey(len(body), [contents, document.get(system)], document.get("tools"))
        found.opaque = (
            found.opaque
            or searches > 0
            or document.get(_member(document, "cachedContent")) is not None
        )
        config_name = _member(document, "generationConfig")
        config = document.object(config_name)
        limit_name = "maxOutputTokens" if config is None else _member(config, "maxOutputTokens")
        tier = numbers.text(document, _member(document, "serviceTier"))
        strange = members.strange(document, "gemini")
        if config is not None:
            strange += members.strange(config, "gemini_config")
        sse = self._stream and parse_qs(envelope.query).get("alt") == ["sse"]
        return Ask(
            document=document,
            model=envelope.model.removeprefix("models/"),
            kind="chat",
            survey=found,
            stream=self._stream,
            limit=None if config is None else numbers.count(config, limit_name),
            limit_at=f"{config_name}.{limit_name}",
            floor=FLOOR_TOKENS,
            choices=_candidates(config),
            audio_output=_speaks(config),
            searches=searches,
            open_searches=searches > 0,
            tier=(tier or "standard").lower(),  # it chooses no dearer one by itself
            array=self._stream and not sse,
            model_in_body=False,
            query="alt=sse" if sse else "",
            strange=strange,
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Reader(ask.tier if ask else None)


def _member(document: Document, name: str) -> str:
    """The name under which a member stands there. Raises `invalid` where it stands there under both."""
    snake = _UPPER.sub(lambda found: f"_{found.group().lower()}", name)
    if snake not in document.members:
        return name
    if name in document.members:
        raise invalid(f"{name} and {snake}: give one of them", name)
    return snake


def _candidates(config: Document | None) -> int:
    if config is None:
        return 1
    return numbers.count(config, _member(config, "candidateCount"), most=numbers.MOST_CHOICES) or 1


def _speaks(config: Document | None) -> bool:
    modalities = None if config is None else config.get(_member(config, "responseModalities"))
    return isinstance(modalities, list) and any(str(one).upper() == "AUDIO" for one in modalities)


def _searches(tools: Any) -> int:
    """Whether Google may search. Raises `invalid` for what runs there without a bound."""
    found = 0
    for tool in tools if isinstance(tools, list) else [tools] if tools else []:
        for name in tool if isinstance(tool, dict) else ():
            if name in _SEARCH:
                found = 1
            elif name not in _CALLERS_TOOL:
                raise invalid(f"the tool {name} cannot be metered here", "tools")
    return found


class _Reader:
    telling: re.Pattern[bytes] | None = None

    def __init__(self, asked: str | None) -> None:
        self.found = Found()
        self._asked = asked  # the tier, where neither answer nor header say what was served
        self._seen: dict[str, Any] = {}
        self._ended = self._spoke = self._grounded = False
        self._queries: set[int] = set()  # by their hashes

    def event(self, data: bytes) -> bool:
        self._chunk(self.found.event(data))
        return False

    def whole(self, body: bytes) -> None:
        answer = answers.parse(body)
        chunks = answer if isinstance(answer, list) else [answer]
        for chunk in chunks:
            self._chunk(chunk)
        self.found.failed = self.found.failed or not any(
            isinstance(chunk, dict) and any(chunk.get(part) for part in _PARTS) for chunk in chunks
        )

    def _chunk(self, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            return
        model = chunk.get("modelVersion")
        if isinstance(model, str) and model:
            self.found.model = model
        if chunk.get("error"):
            self.found.fails(chunk["error"])
        candidates = chunk.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else []:
            self._candidate(candidate)
        # A prompt that is refused has no candidates, and ends there.
        self._ended = self._ended or at(chunk, "promptFeedback.blockReason") is not None
        usage = chunk.get("usageMetadata")
        if isinstance(usage, dict):
            self._usage(usage)
        self.found.searches = len(self._queries) or int(self._grounded)
        if self.found.searches and self.found.usage is not None:
            self.found.usage = self.found.usage.with_searches(self.found.searches)
        # Text whose tokens nobody has counted has no usage that is whole.
        counted = not self._spoke or _answered(self._seen) is not None
        self.found.finished = self._ended and counted

    def _usage(self, usage: dict[str, Any]) -> None:
        """Counts are cumulative, and not every chunk repeats all of them."""
        for name, value in usage.items():
            numbers.replace(self._seen, name, value)
        if self._seen.keys().isdisjoint(_SAID):
            return
        served, traffic = self._seen.get("serviceTier"), str(self._seen.get("trafficType"))
        if isinstance(served, str):
            self.found.tier = served.lower()
        self.found.tier = self.found.tier or _TRAFFIC.get(traffic)
        self.found.usage = _buckets(self._seen, tier=self.found.tier or self._asked)

    def _candidate(self, candidate: Any) -> None:
        self._ended = self._ended or bool(at(candidate, "finishReason"))
        self._grounding(at(candidate, "groundingMetadata"))
        parts = at(candidate, "content.parts")
        for part in parts if isinstance(parts, list) else []:
            text_bytes = _text_bytes(part)
            self.found.text_bytes += text_bytes
            self._spoke = self._spoke or (text_bytes > 0 and at(part, "thought") is not True)

    def _grounding(self, metadata: Any) -> None:
        """Searches: Google counts those that differ and are not empty. What was found shows that there was one."""
        queries = at(metadata, "webSearchQueries")
        for query in queries if isinstance(queries, list) else []:
            if isinstance(query, str) and query.strip():
                self._queries.add(hash(query))
        self._grounded = self._grounded or bool(at(metadata, "groundingChunks"))


def _answered(usage: dict[str, Any]) -> int | None:
    """Tokens of what was answered, without thoughts; None where neither a count nor the total tells them."""
    candidates, total = (
        reported(usage.get("candidatesTokenCount")),
        reported(usage.get("totalTokenCount")),
    )
    read, thoughts = _read(usage), natural(usage.get("thoughtsTokenCount"))
    if candidates is None:
        return total - read - thoughts if total is not None and total > read + thoughts else None
    # Some count the thoughts among them, and the total once.
    return candidates - thoughts if total == read + candidates else candidates


def _read(usage: dict[str, Any]) -> int:
    """All input tokens."""
    return natural(usage.get("promptTokenCount")) + natural(usage.get("toolUsePromptTokenCount"))


def _buckets(usage: dict[str, Any], *, tier: str | None) -> Usage | None:
    """None where it does not say the input, or says what is no count."""
    said = [usage[name] for name in _COUNTS if name in usage]
    if reported(usage.get("promptTokenCount")) is None or any(
        reported(count) is None for count in said
    ):
        return None
    prompt, read, candidates = natural(usage["promptTokenCount"]), _read(usage), _answered(usage)
    candidates, thoughts = max(0, candidates or 0), natural(usage.get("thoughtsTokenCount"))
    # What the total has beyond all that was told was thought, and nobody mentions it.
    thoughts = max(thoughts, natural(usage.get("totalTokenCount")) - read - candidates)
    cached = min(prompt, natural(usage.get("cachedContentTokenCount")))
    heard = min(prompt, _of(usage, "promptTokensDetails", "AUDIO"))
    audio_in = min(prompt - cached, max(0, heard - _of(usage, "cacheTokensDetails", "AUDIO")))
    audio_cached = min(cached, heard - audio_in)
    audio_out = min(candidates, _of(usage, "candidatesTokensDetails", "AUDIO"))
    images_out = min(candidates - audio_out, _of(usage, "candidatesTokensDetails", "IMAGE"))
    return Usage(
        input=read - cached - audio_in,
        cache_read=cached - audio_cached,
        audio_cache_read=audio_cached,
        output=candidates - audio_out - images_out + thoughts,
        reasoning=thoughts,
        audio_input=audio_in,
        audio_output=audio_out,
        image_output=images_out,
        tier=None if tier in PLAIN_TIERS else tier,
    )


def _of(usage: dict[str, Any], name: str, modality: str) -> int:
    """Tokens of one modality in a list of them."""
    rows = usage.get(name)
    return sum(
        natural(at(row, "tokenCount"))
        for row in (rows if isinstance(rows, list) else [])
        if at(row, "modality") == modality
    )


def _text_bytes(part: Any) -> int:
    text, arguments = at(part, "text"), at(part, "functionCall.args")
    found = len(text.encode("utf-8", "replace")) if isinstance(text, str) else 0
    return found + (len(orjson.dumps(arguments)) if isinstance(arguments, dict) else 0)
