"""What arrived at the scripted provider, read alike whichever wire it came on."""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# By how a path ends: providers have bases of their own.
PATHS = {
    "/chat/completions": "openai",
    "/messages": "anthropic",
    "/responses": "responses",
    "/messages/count_tokens": "plain",
    "/images/generations": "plain",
    "/audio/speech": "plain",
    "/audio/transcriptions": "plain",
    "/embeddings": "embeddings",
    "/models": "models",
}
_GEMINI = re.compile(r"/v1beta/models/(.+):(generateContent|streamGenerateContent)(?:\?alt=sse)?")


@dataclass
class Request:
    """One request, kept for ever. `outcome` is None until the answer has ended, then `complete`,
    `left` (the client went away) or `dropped` (on purpose)."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    raw_headers: list[tuple[str, str]]
    body: bytes
    at_ms: int
    outcome: str | None = None
    step: str | None = None
    sent_bytes: int = 0
    sent: list[bytes] = field(default_factory=list, repr=False)

    @property
    def wire(self) -> str:
        """`openai`, `anthropic`, `responses`, `gemini`, `embeddings`, `models`, `plain` or `unknown`.

        `plain`: a path whose answers a test writes out, body and all.
        """
        if self._gemini:
            return "gemini"
        path = self.path.partition("?")[0]
        return next((wire for end, wire in PATHS.items() if path.endswith(end)), "unknown")

    @cached_property
    def _gemini(self) -> re.Match[str] | None:
        return _GEMINI.fullmatch(self.path)

    @cached_property
    def json(self) -> dict[str, Any]:
        """The body as JSON; empty where it is none."""
        try:
            parsed = json.loads(self.body) if self.body else {}
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}

    @property
    def model(self) -> str:
        """The model asked for."""
        return self._gemini.group(1) if self._gemini else str(self.json.get("model", ""))

    @property
    def streams(self) -> bool:
        """Whether a stream is asked for."""
        if self._gemini:
            return self._gemini.group(2) == "streamGenerateContent"
        return bool(self.json.get("stream"))

    @property
    def include_usage(self) -> bool:
        """Whether an OpenAI stream is to tell its usage."""
        options = self.json.get("stream_options")
        return isinstance(options, dict) and bool(options.get("include_usage"))

    @property
    def max_tokens(self) -> int | None:
        """The token limit, under whichever name."""
        found = self.json.get("max_completion_tokens", self.json.get("max_tokens"))
        return found if isinstance(found, int) else None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as they came."""
        found = self.json.get("messages")
        return found if isinstance(found, list) else []

    @property
    def system(self) -> str:
        """The system text: Anthropic's field, or OpenAI's system and developer messages."""
        own = _text(self.json.get("system"))
        roles = ("system", "developer")
        return "\n".join(
            filter(None, [own, *(text_of(m) for m in self.messages if m.get("role") in roles)])
        )

    @property
    def last_text(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1]) if self.messages else ""

    @property
    def tools(self) -> list[str]:
        """Names of the tools offered."""
        offered = self.json.get("tools") or []
        return [str(t.get("name") or t.get("function", {}).get("name", "")) for t in offered]

    @property
    def tool_results(self) -> dict[str, str]:
        """Results that came along, by call id."""
        found: dict[str, str] = {}
        for message in self.messages:
            if message.get("role") == "tool":
                found[str(message.get("tool_call_id"))] = text_of(message)
            for block in blocks(message):
                if block.get("type") == "tool_result":
                    found[str(block.get("tool_use_id"))] = _text(block.get("content"))
        return found

    @property
    def input_words(self) -> int:
        """What counts as input tokens here: words of all text and of the tools' definitions."""
        said = " ".join([self.system, *(_everything(m) for m in self._spoken())])
        return len(said.split()) + len(json.dumps(self.json.get("tools") or []).split())

    def _spoken(self) -> list[dict[str, Any]]:
        return [m for m in self.messages if m.get("role") not in ("system", "developer")]

    def __str__(self) -> str:
        said = self.last_text if len(self.last_text) <= 80 else self.last_text[:77] + "…"
        return (
            f"#{self.number} {self.method} {self.path} model={self.model!r} "
            f"stream={self.streams} tools={self.tools} last={said!r}"
        )


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The content blocks of a message; none where its content is a plain string."""
    content = message.get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, tool results included."""
    return _text(message.get("content"))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    found = []
    for block in content:
        if isinstance(block, dict):
            found.append(str(block.get("text") or "") or _text(block.get("content")))
    return "\n".join(filter(None, found))


def _everything(message: dict[str, Any]) -> str:
    called = message.get("tool_calls") or [
        b for b in blocks(message) if b.get("type") == "tool_use"
    ]
    return f"{text_of(message)} {json.dumps(called) if called else ''}"
