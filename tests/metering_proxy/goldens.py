"""The golden streams: what a provider sends, as whom, to which request, and what a meter must find in it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metering_proxy.pricing import Usage
from metering_proxy.wires import paths
from metering_proxy.wires.wire import Wire
from tests import draws
from tests.metering_proxy.house import MODEL
from tests.scripted import Reply, recorded

_FOLDER = Path(__file__).with_name("golden")
_MESSAGES = [{"role": "user", "content": "hi"}]
_PARTS = {"contents": [{"parts": [{"text": "hi"}]}]}
# By wire: path and body. Usage is asked for, so that nothing has to be taken out.
ASKED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "messages": (
        "/v1/messages",
        {"model": MODEL, "max_tokens": 900, "messages": _MESSAGES, "stream": True},
    ),
    "chat": (
        "/v1/chat/completions",
        {
            "model": MODEL,
            "messages": _MESSAGES,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    ),
    "responses": ("/v1/responses", {"model": MODEL, "input": "hi", "stream": True}),
    "gemini_events": (f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse", _PARTS),
    "gemini_array": (f"/v1beta/models/{MODEL}:streamGenerateContent", _PARTS),
}


@dataclass(frozen=True)
class Golden:
    """One stream. `usage` None: it has to be estimated. `cost_nanos`: what the provider states and is charged."""

    name: str
    kind: str
    wire: str
    usage: Mapping[str, Any] | None = None
    outcome: str = "complete"
    estimated: bool = False
    doubt: str | None = None
    cost_nanos: int | None = None
    body: bytes = field(default=b"", repr=False)

    @property
    def content_type(self) -> str:
        """As its provider says it."""
        return "application/json" if self.wire == "gemini_array" else "text/event-stream"

    @property
    def reply(self) -> Reply:
        """The scripted provider's answer."""
        return recorded(self.body, self.content_type)

    @property
    def found(self) -> Usage:
        """What is in it; a plain tier goes without saying."""
        return Usage(**(self.usage or {}))

    @property
    def reads(self) -> Wire:
        """The wire that reads it."""
        found = paths.find(ASKED[self.wire][0].partition("?")[0])
        assert found is not None
        return found[0]

    def cuts(self, most: int) -> list[int]:
        """So many places between its bytes: today's choice, the same all day."""
        places = range(1, len(self.body))
        return sorted(draws.chance(self.name).sample(places, min(most, len(places))))


def _load() -> list[Golden]:
    rows = tomllib.loads((_FOLDER / "index.toml").read_text())["stream"]
    return [Golden(**row, body=(_FOLDER / f"{row['name']}.stream").read_bytes()) for row in rows]


GOLDENS = _load()
