"""Ten thousand random requests on every wire: what is held is at least the worst that each of them can cost.

The worst is worked out here by itself, from what a provider documents, not from what the meter surveys.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from infra.kit import money
from metering_proxy import plans, pricing
from metering_proxy.pricing import Price, Usage
from metering_proxy.providers import price_file
from metering_proxy.providers.catalog import Route
from metering_proxy.providers.connections import Connection, Model
from metering_proxy.providers.kinds import kinds
from metering_proxy.tenant_side.terms import Terms, agree
from metering_proxy.tenants import Standing
from metering_proxy.wires import paths
from metering_proxy.wires.wire import Envelope
from tests.metering_proxy import recordings, unseen

_EACH = 1_250
_AT = 1_800_000_000_000
_PLAN = plans.load().get("plus")
_STANDING = Standing(_PLAN, "active", _PLAN.spans(0))
_LETTERS = 'abc xyz 0123 äöü 日本語明天 👩🏽‍🚀 \\" \n {}[]:,'


@dataclass
class Case:
    """A request, and the most that its provider can count for it."""

    body: bytes
    input: int
    output: int
    hour: bool = False
    tier: str | None = None
    audio: bool = False
    searches: int = 0
    units: Usage | None = None
    content_type: str = ""


def _text(chance: random.Random) -> str:
    return "".join(chance.choices(_LETTERS, k=chance.choice([0, 3, 40, 400])))


def _size(text: str) -> int:
    return len(text.encode())


def _dumped(chance: random.Random, body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=chance.random() < 0.5).encode()


def _limit(chance: random.Random, most: int) -> int | None:
    return chance.choice([None, 1, chance.randint(1, most), most])


def _chat(chance: random.Random, context: int, most: int, image: int) -> Case:
    texts = [_text(chance) for _ in range(chance.randint(1, 5))]
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    images = chance.choice([0, 0, 1, 3])
    parts += [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 90}"}}
    ] * images
    hidden = chance.random() < 0.1
    parts += [chance.choice(unseen.PARTS)] * hidden
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": parts}]}
    limit, n = _limit(chance, most), chance.choice([None, 1, 4])
    if limit is not None:
        body[chance.choice(["max_tokens", "max_completion_tokens"])] = limit
    if n is not None:
        body["n"] = n
    tier = chance.choice([None, "auto", "default", "flex", "priority"])
    if tier is not None:
        body["service_tier"] = tier
    prediction = _text(chance) if chance.random() < 0.3 else ""
    if prediction:
        body["prediction"] = {"type": "content", "content": prediction}
    counted = sum(map(_size, texts)) + images * image
    output = (limit or most) * (n or 1) + _size(prediction)
    return Case(_dumped(chance, body), context if hidden else counted, output, tier=tier)


def _responses(chance: random.Random, context: int, most: int, image: int) -> Case:
    text, hidden = (
        _text(chance),
        chance.choice([None, None, "previous_response_id", "conversation"]),
    )
    items: list[dict[str, Any]] = [{"role": "user", "content": text}]
    by_its_id = chance.random() < 0.3
    items += [chance.choice(unseen.ITEMS)] * by_its_id
    body: dict[str, Any] = {"model": "m", "input": items, "instructions": text}
    if not by_its_id and chance.random() < 0.5:
        body["input"] = text
    limit = _limit(chance, most)
    if limit is not None:
        body["max_output_tokens"] = limit
    if hidden:
        body[hidden] = "x_1"
    tier = chance.choice([None, "auto", "flex", "priority"])
    if tier:
        body["service_tier"] = tier
    counted = context if hidden or by_its_id else 2 * _size(text)
    return Case(_dumped(chance, body), counted, limit or most, tier=tier)


def _messages(chance: random.Random, context: int, most: int, image: int) -> Case:
    texts = [_text(chance) for _ in range(3)]
    hour, fake = chance.random() < 0.4, "B" * chance.choice([0, 9_000])
    block: dict[str, Any] = {"type": "text", "text": texts[0]}
    if hour:
        block["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    images, hidden = chance.choice([0, 2]), chance.random() < 0.1
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 90}}
    # A picture inside of a tool's arguments is text, and costs as text.
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "n",
        "input": {"type": "image", "source": {"data": fake}},
    }
    searches = chance.choice([0, 0, 0, 2])
    body: dict[str, Any] = {
        "model": "m",
        "max_tokens": chance.randint(1, most),
        "system": texts[1],
        "messages": [
            {"role": "user", "content": [block, *[picture] * images, *[unseen.BLOCK] * hidden]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": texts[2]},
        ],
    }
    if searches:
        body["tools"] = [
            {"type": "web_search_20250305", "name": "web_search", "max_uses": searches}
        ]
    counted = sum(map(_size, texts)) + len(fake) + images * image
    counted = context * (1 + searches) if searches or hidden else counted
    return Case(_dumped(chance, body), counted, body["max_tokens"], hour=hour, searches=searches)


def _gemini(chance: random.Random, context: int, most: int, image: int) -> Case:
    text, images = _text(chance), chance.choice([0, 2])
    picture = {"inlineData": {"mimeType": "image/png", "data": "A" * 90}}
    heard = chance.random() < 0.2
    parts = [{"text": text}, *[picture] * images]
    parts += [{"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}}] * heard
    body: dict[str, Any] = {"contents": [{"parts": parts}]}
    limit, n = _limit(chance, most), chance.choice([None, 3])
    snake = chance.random() < 0.5
    config: dict[str, Any] = {}
    if limit is not None:
        config["max_output_tokens" if snake else "maxOutputTokens"] = limit
    if n is not None:
        config["candidateCount"] = n
    if config:
        body["generation_config" if snake else "generationConfig"] = config
    hidden = chance.random() < 0.2
    if hidden:
        body["cachedContent"] = "cachedContents/1"
    counted = context if hidden or heard else _size(text) + images * image
    return Case(_dumped(chance, body), counted, (limit or most) * (n or 1), audio=heard)


def _embeddings(chance: random.Random, context: int, most: int, image: int) -> Case:
    tokens = [chance.randint(0, 200_000) for _ in range(chance.randint(1, 50))]
    text = _text(chance) or "x"
    given = chance.choice([tokens, text, [text, text]])
    counted = len(tokens) if given is tokens else _size(text) * (1 if given is text else 2)
    return Case(_dumped(chance, {"model": "m", "input": given}), min(counted, context), 0)


def _images(chance: random.Random, context: int, most: int, image: int) -> Case:
    n = chance.choice([None, 1, 7])
    body: dict[str, Any] = {"model": "m", "prompt": _text(chance)}
    if n is not None:
        body["n"] = n
    named = [
        chance.choice(["", "standard", "hd"]),
        chance.choice(["", "1024x1024", "1792x1024", "9x9"]),
    ]
    body |= {k: v for k, v in zip(("quality", "size"), named, strict=True) if v}
    worst = f"image {named[0] or 'hd'} {named[1] if '1' in named[1] else '1792x1024'}"
    return Case(_dumped(chance, body), 0, 0, units=Usage(units=n or 1, unit=worst))


def _speech(chance: random.Random, context: int, most: int, image: int) -> Case:
    text = _text(chance) or "x"
    said = Usage(units=len(text), unit="character")
    return Case(_dumped(chance, {"model": "m", "input": text, "voice": "v"}), 0, 0, units=said)


def _transcriptions(chance: random.Random, context: int, most: int, image: int) -> Case:
    lasts_ms = chance.randint(1, 3_000)
    claimed = chance.choice([None, 0, 16])
    body = recordings.form(recordings.wav(lasts_ms / 1000, claimed_bytes=claimed))
    heard = Usage(units=lasts_ms, unit="millisecond")
    return Case(body, 0, 0, units=heard, content_type=recordings.FORM_TYPE)


Make = Callable[[random.Random, int, int, int], Case]
_WIRES: dict[str, tuple[Make, str, str]] = {
    "openai_chat": (_chat, "openai", "gpt-5"),
    "openai_responses": (_responses, "openai", "gpt-5"),
    "anthropic_messages": (_messages, "anthropic", "claude-sonnet-4-5"),
    "gemini_generate": (_gemini, "google", "gemini-2.5-pro"),
    "openai_embeddings": (_embeddings, "openai", "text-embedding-3-small"),
    "openai_images": (_images, "openai", "dall-e-3"),
    "openai_speech": (_speech, "openai", "tts-1"),
    "openai_transcriptions": (_transcriptions, "openai", "whisper-1"),
}


def _route(provider: str, model: str) -> Route:
    found = next(item for item in price_file.load()[provider] if item.facts.id == model)
    offered = Model(f"{provider}/{model}", provider, found.facts, found.prices)
    connection = Connection(provider, kinds()[provider], provider, "https://x", (offered,))
    return Route(connection, offered, found.prices[-1])


def _served(case: Case, price: Price) -> str | None:
    """A setting of the whole account serves what pins no tier in whichever it names."""
    if case.tier not in (None, "auto"):
        return case.tier
    return max(price.tiers, key=lambda tier: price.tiers[tier], default=None)


def _usages(chance: random.Random, case: Case, price: Price) -> list[Usage]:
    """All input of the dearest sort that the request can reach, and some mixtures."""
    if case.units is not None:
        return [case.units]
    total, output, tier = case.input, case.output, _served(case, price)
    read = chance.randint(0, total)
    plain = Usage(input=total, output=output, tier=tier, web_searches=case.searches)
    found = [plain, replace(plain, input=total - read, cache_read=read)]
    if case.hour:
        found.append(replace(plain, input=0, cache_write_1h=total))
    if case.audio:
        found.append(replace(plain, input=0, audio_input=total))
        found.append(replace(plain, input=0, audio_cache_read=total))
    return found


def _charge(usage: Usage, price: Price) -> int:
    return money.with_markup(pricing.cost_nanos(usage, price), _PLAN.markup_ppm)


def _agreed(wire: str, case: Case, route: Route) -> Terms:
    ask = paths.WIRES[wire].read(case.body, Envelope("named", "", case.content_type))
    return agree(ask, route, _STANDING, _AT)


@pytest.mark.parametrize("wire", _WIRES)
def test_hold_is_at_least_the_worst_cost_of_random_requests(wire: str) -> None:
    make, provider, model = _WIRES[wire]
    route = _route(provider, model)
    facts = route.model.facts
    chance = random.Random(wire)
    for number in range(_EACH):
        case = make(chance, facts.bound_tokens, facts.max_output_tokens, facts.image_tokens or 0)
        agreed = _agreed(wire, case, route)
        held = agreed.bound.charge_nanos(agreed.wanted)
        for usage in _usages(chance, case, route.price):
            assert _charge(usage, route.price) <= held, (number, case.body[:300], usage)


def test_ten_thousand_requests_are_tried() -> None:
    assert _EACH * len(_WIRES) >= 10_000


def test_lowered_limit_covers_the_worst_as_well() -> None:
    route = _route("openai", "gpt-5")
    chance = random.Random("lowered")
    for _ in range(300):
        case = _chat(chance, route.model.facts.bound_tokens, 5_000, 10_000)
        agreed = _agreed("openai_chat", case, route)
        bound = agreed.bound
        limit = bound.affordable(bound.charge_nanos(agreed.wanted) // 2, agreed.wanted)
        if limit < 1:
            continue
        output = limit * bound.choices + bound.extra_output
        usage = Usage(input=case.input, output=output, tier=_served(case, route.price))
        assert _charge(usage, route.price) <= bound.charge_nanos(limit)


def test_unit_of_a_kind_that_has_no_price_costs_the_dearest_of_its_sort() -> None:
    price = _route("openai", "dall-e-3").price
    assert price.unit("image hd 9x9") == max(price.units.values()) == Fraction(120_000_000)
