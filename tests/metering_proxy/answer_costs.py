"""A meter where everything has a rate of its own, and what recorded answers come to in its ledger.

Each answer goes over real sockets, from a scripted provider through a whole meter to its caller.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from metering_proxy.pricing import Usage
from tests import scripted as s
from tests.metering_proxy.house import House, a_house
from tests.scripted import ScriptedProvider

Row = tuple[str, str, bytes, Usage | None]
"""What reported it, the kind of provider, the answer, and what it used; None: the answer does not tell."""

# US dollars a million tokens, a thousand searches; no two are alike, so no two buckets can be confused.
_USD = {
    "input": 1,
    "output": 10,
    "cache_read": Fraction(1, 10),
    "cache_write_5m": Fraction(5, 4),
    "cache_write_1h": 2,
    "audio_input": 32,
    "audio_output": 64,
    "audio_cache_read": Fraction(2, 5),
    "image_input": 8,
    "image_output": 30,
}
_USD_A_THOUSAND_SEARCHES = 10
_TIERS = {"flex": Fraction(1, 2), "priority": Fraction(2), "us": Fraction(11, 10)}
_KINDS = (
    "openai", "anthropic", "google", "xai", "mistral", "deepseek", "openrouter", "moonshot", "perplexity", "groq",
    "minimax", "glm", "openai_compatible", "anthropic_compatible",
)  # fmt: skip
_SAID = [{"role": "user", "content": "hi"}]
_PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {"messages": _SAID, "stream_options": {"include_usage": True}},
    ),
    "messages": ("/v1/messages", {"messages": _SAID, "max_tokens": 500}),
    "responses": ("/v1/responses", {"input": "hi"}),
    "embeddings": ("/v1/embeddings", {"input": "hi"}),
    "images": ("/v1/images/generations", {"prompt": "a house"}),
    "gemini": ("", {"contents": [{"parts": [{"text": "hi"}]}]}),
}


def nanos(usage: Usage) -> Fraction:
    """What that costs here, worked out without the code under test."""
    tokens = sum(getattr(usage, name) * usd * 1_000 for name, usd in _USD.items())
    tier = _TIERS.get(usage.tier or "", Fraction(1))
    return tokens * tier + usage.web_searches * _USD_A_THOUSAND_SEARCHES * 1_000_000


def _prices() -> str:
    rates = "\n".join(f'{name} = "{float(usd)}"' for name, usd in _USD.items())
    tiers = ", ".join(f'{name} = "{factor}"' for name, factor in _TIERS.items())
    return "\n".join(
        f"[[model]]\nprovider = {provider!r}\nid = {kind!r}\nkind = {kind!r}\ncontext_tokens = 500_000\n"
        f"max_output_tokens = 5_000\n[[model.price]]\nfrom = 2020-01-01\n{rates}\n"
        f'web_search = "{_USD_A_THOUSAND_SEARCHES}"\ntiers = {{ {tiers} }}\n'
        for provider in _KINDS
        for kind in ("chat", "embedding", "image")
    )


@dataclass
class PricedMeter:
    """A running meter with a connection to the scripted provider as each kind."""

    house: House
    scripted: ScriptedProvider
    _connections: dict[str, str] = field(default_factory=dict)

    async def entry(
        self, wire: str, kind: str, body: bytes, *, cut_at: int | None = None
    ) -> dict[str, Any]:
        """The ledger's entry of a call that is answered with `body`, whose caller got those bytes.

        `cut_at`: after so many of them the connection to the provider breaks.
        """
        if kind not in self._connections:
            self._connections[kind] = await self.house.connect(self.scripted, kind)
        path, asked = _PATHS[wire]
        model = {"embeddings": "embedding", "images": "image"}.get(wire, "chat")
        named, stream = f"{self._connections[kind]}/{model}", body.startswith(b"data:")
        if wire == "gemini":
            path = f"/v1beta/models/{named}:streamGenerateContent?alt=sse"
        else:
            asked = {"model": named, **({"stream": True} if stream else {}), **asked}
            if not stream:
                asked.pop("stream_options", None)
        told = "text/event-stream" if stream else "application/json"
        reply = s.recorded(body, told)
        tenant = await self.house.tenant("free", charge_month_nanos=None)
        expected = s.on_wire("embeddings") if wire == "embeddings" else s.anything
        self.scripted.then(expected, reply=reply if cut_at is None else reply.dropped_after(cut_at))
        answer = await tenant.post(path, asked)
        assert (answer.status, answer.body, answer.cut) == (200, body[:cut_at], cut_at is not None)
        [entry] = await self.house.entries(tenant)
        return entry

    async def wrong(self, wire: str, rows: Sequence[Row]) -> dict[str, Any]:
        """The answers that are not charged to the nano, or not estimated where they do not tell what they used."""
        found = {}
        for name, kind, body, usage in rows:
            entry = await self.entry(wire, kind, body)
            due = None if usage is None else round(nanos(usage))
            if (bool(entry["estimated"]), entry["cost_nanos"]) != (
                due is None,
                due or entry["cost_nanos"],
            ):
                found[name] = (entry["cost_nanos"], due, entry["parts"])
        return found


@asynccontextmanager
async def a_priced_meter(root: Path, scripted: ScriptedProvider) -> AsyncIterator[PricedMeter]:
    """One, while the block runs."""
    prices = root / "prices.toml"
    prices.write_text(_prices())
    async with a_house(root, f"sqlite:///{root}/meter.db", prices_file=prices) as house:
        yield PricedMeter(house, scripted)
