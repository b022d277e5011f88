"""Usage of Gemini's answers as public bug reports have seen it: each row is one of them, as small as can be.

The reports are about gateways and meters that read the same wire; a row's name is the report's.
"""

from typing import Any

import pytest

from metering_proxy import pricing
from metering_proxy.pricing import Usage
from metering_proxy.providers import price_file
from tests.metering_proxy import small_answers
from tests.metering_proxy.small_answers import events


def _chunk(
    usage: dict[str, Any], text: str = "hi", *, end: str | None = "STOP", thought: bool = False
) -> dict[str, Any]:
    part = {"text": text, "thought": True} if thought else {"text": text}
    candidate: dict[str, Any] = {"content": {"parts": [part] if text else []}}
    return {
        "candidates": [{**candidate, "finishReason": end} if end else candidate],
        "usageMetadata": usage,
    }


def _counts(prompt: int, candidates: int | None, total: int, **more: Any) -> dict[str, Any]:
    found = {"promptTokenCount": prompt, "totalTokenCount": total, **more}
    return found if candidates is None else {**found, "candidatesTokenCount": candidates}


def _of(modality: str, tokens: int) -> dict[str, Any]:
    return {"modality": modality, "tokenCount": tokens}


_LEFT = {
    "cachedContentTokenCount": 9651,
    "promptTokensDetails": [_of("TEXT", 9402), _of("IMAGE", 258)],
    "cacheTokensDetails": [_of("TEXT", 9393), _of("IMAGE", 258)],
}
_GEMINI = [
    (
        "new-api#2935",
        events(
            _chunk(
                _counts(151, 1089, 20_689, toolUsePromptTokenCount=18_329, thoughtsTokenCount=1120)
            )
        ),
        Usage(input=18_480, output=2209, reasoning=1120),
    ),
    (
        "any-llm#1367",
        events(_chunk(_counts(80, 173, 550, toolUsePromptTokenCount=237, thoughtsTokenCount=60))),
        Usage(input=317, output=233, reasoning=60),
    ),
    (
        "litellm#24622",
        events(_chunk(_counts(80, 173, 490, toolUsePromptTokenCount=237, thoughtsTokenCount=60))),
        Usage(input=317, output=173, reasoning=60),
    ),
    (
        "llm-gemini#75",
        events(_chunk(_counts(20, 603, 623, thoughtsTokenCount=405))),
        Usage(input=20, output=603, reasoning=405),
    ),
    (
        "CLIProxyAPI#5733",
        events(_chunk(_counts(21, None, 81, thoughtsTokenCount=60), "", end="MAX_TOKENS")),
        Usage(input=21, output=60, reasoning=60),
    ),
    (
        "thoughts shown, then the limit",
        events(
            _chunk(
                _counts(21, None, 61, thoughtsTokenCount=40), "hm " * 99, end=None, thought=True
            ),
            _chunk(_counts(21, None, 81, thoughtsTokenCount=60), "", end="MAX_TOKENS"),
        ),
        Usage(input=21, output=60, reasoning=60),
    ),
    (
        "CLIProxyAPI#4964",
        events(_chunk(_counts(0, 0, 0), end=None), _chunk(_counts(30, 4, 34))),
        Usage(input=30, output=4),
    ),
    (
        "zeros at the end",
        events(_chunk(_counts(30, 4, 34), end=None), _chunk(_counts(0, 0, 0), "")),
        Usage(input=30, output=4),
    ),
    (
        "langchainjs#9912",
        events(
            _chunk({"cachedContentTokenCount": 5100, "trafficType": "ON_DEMAND"}, end=None),
            _chunk(_counts(5105, 16, 5121, cachedContentTokenCount=5100)),
        ),
        Usage(input=5, cache_read=5100, output=16),
    ),
    (
        "thoughts told once",
        events(
            _chunk(_counts(30, 1, 81, thoughtsTokenCount=50), end=None), _chunk(_counts(30, 4, 84))
        ),
        Usage(input=30, output=54, reasoning=50),
    ),
    (
        "simonw's thoughts in the total",
        events(_chunk(_counts(264, 104, 1357))),
        Usage(input=264, output=1093, reasoning=989),
    ),
    (
        "claude-code-hub#663",
        events(
            _chunk(
                _counts(
                    326,
                    2340,
                    3003,
                    thoughtsTokenCount=337,
                    candidatesTokensDetails=[_of("IMAGE", 2000)],
                )
            )
        ),
        Usage(input=326, output=677, reasoning=337, image_output=2000),
    ),
    (
        "litellm#18750",
        events(_chunk(_counts(9660, 14, 9674, **_LEFT))),
        Usage(input=9, cache_read=9651, output=14),
    ),
    (
        "litellm#19775",
        events(
            _chunk(
                _counts(
                    1000,
                    14,
                    1014,
                    cachedContentTokenCount=900,
                    promptTokensDetails=[_of("AUDIO", 990), _of("TEXT", 10)],
                )
            )
        ),
        Usage(cache_read=10, audio_cache_read=890, audio_input=100, output=14),
    ),
    ("litellm#37994", events(_chunk(_counts(0, 0, 0), "hi" * 99)), Usage()),
    (
        "only the total",
        events(_chunk(_counts(6, None, 106), "hi" * 99)),
        Usage(input=6, output=100),
    ),
    ("feeds.fun#406", events(_chunk({"promptTokenCount": 6}, "hi" * 99)), None),
]


def test_cached_sound_costs_more_than_cached_text_where_the_provider_says_so() -> None:
    """genai-prices#141: Gemini 2.5 Flash reads a million cached tokens of sound for $0.10, of text for $0.03."""
    [flash] = [m for m in price_file.load()["google"] if m.facts.id == "gemini-2.5-flash"]
    usage = Usage(input=10, cache_read=100, audio_cache_read=1000, audio_input=10, output=1)
    assert pricing.cost(usage, flash.prices[-1]) == 10 * 300 + 100 * 30 + 1000 * 100 + 10_000 + 2500


def test_cached_sound_costs_as_cached_text_where_there_is_no_price_for_it() -> None:
    price = pricing.Price("p", 0, pricing.Rates(2_000_000, cache_read=1_000_000))
    assert pricing.cost(Usage(audio_cache_read=7, cache_read=3), price) == 10


@pytest.mark.parametrize(
    ("body", "expected"), [pytest.param(*row, id=name) for name, *row in _GEMINI]
)
def test_usage_of_geminis_answer_is_read_rightly(body: bytes, expected: Usage | None) -> None:
    small_answers.check("gemini_stream", "google", body, expected)
