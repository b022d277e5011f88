"""Caches in chats as further public bug reports have seen them, each charged to the nano through a whole meter.

A row's name is the report's: they are about gateways and meters that read the same wire.
"""

from pathlib import Path

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy.answer_costs import Row, a_priced_meter
from tests.metering_proxy.small_answers import chat, inside, stop, tokens, used, whole, word
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_ANY = "openai_compatible"
_USED = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def _lifetimes(minutes: int, hour: int) -> dict[str, int]:
    return {"ephemeral_5m_input_tokens": minutes, "ephemeral_1h_input_tokens": hour}


_MISTRAL = Usage(input=33, cache_read=768, output=2)
_WRITTEN: list[Row] = [
    (
        "litellm#31724",
        _ANY,
        chat(
            word(),
            stop(),
            used(
                **tokens(4818, 47, 4865),
                **inside(
                    cached_tokens=0,
                    text_tokens=15,
                    cache_creation_tokens=4803,
                    cache_creation_token_details=_lifetimes(0, 4803),
                ),
                cache_creation_input_tokens=4803,
                cache_read_input_tokens=0,
            ),
        ),
        Usage(input=15, cache_write_1h=4803, output=47),
    ),
    (
        "litellm#29432",
        _ANY,
        whole(
            {
                **tokens(1000, 5, 1005),
                **inside(
                    cache_creation_tokens=700, cache_creation_token_details=_lifetimes(288, 400)
                ),
            }
        ),
        Usage(input=300, cache_write_5m=300, cache_write_1h=400, output=5),
    ),
    (
        "litellm#11364",
        _ANY,
        whole(
            {
                **tokens(98805, 5120, 103925),
                **inside(
                    text_tokens=None,
                    audio_tokens=None,
                    cached_tokens=66360,
                    cache_creation_tokens=32435,
                ),
                "cache_read_input_tokens": 66360,
                "cache_creation_input_tokens": 32435,
                "completion_tokens_details": {"reasoning_tokens": 1710, "text_tokens": None},
            }
        ),
        Usage(input=10, cache_read=66360, cache_write_5m=32435, output=5120),
    ),
    (
        "litellm#40090 written",
        _ANY,
        whole(
            {
                **tokens(1900, 5, 1905),
                **inside(cache_creation_input_tokens=1889, cache_type="ephemeral", cached_tokens=0),
            }
        ),
        Usage(input=11, cache_write_5m=1889, output=5),
    ),
    (
        "litellm#40090 for five minutes",
        _ANY,
        whole(
            {
                **tokens(1900, 5, 1905),
                **inside(
                    cache_creation_input_tokens=1889,
                    cache_creation={"ephemeral_5m_input_tokens": 1889},
                    cache_type="ephemeral",
                ),
            }
        ),
        Usage(input=11, cache_write_5m=1889, output=5),
    ),
    (
        "litellm#40090 read",
        _ANY,
        whole(
            {
                **tokens(1900, 5, 1905),
                **inside(cache_creation_input_tokens=0, cache_type="ephemeral", cached_tokens=1889),
            }
        ),
        Usage(input=11, cache_read=1889, output=5),
    ),
    (
        "bifrost#6500",
        _ANY,
        whole(
            {
                **tokens(2600, 300, 2900),
                **inside(cached_read_tokens=2000, cached_write_tokens=400),
            }
        ),
        Usage(input=200, cache_read=2000, cache_write_5m=400, output=300),
    ),
    (
        "new-api, written for both",
        _ANY,
        whole(
            {
                **tokens(1000, 5, 1005),
                **inside(cached_tokens=100, cached_creation_tokens=500),
                "claude_cache_creation_5_m_tokens": 200,
                "claude_cache_creation_1_h_tokens": 300,
            }
        ),
        Usage(input=400, cache_read=100, cache_write_5m=200, cache_write_1h=300, output=5),
    ),
    (
        "agentcore#945",
        "openai",
        whole(
            {
                **tokens(30000, 9, 30009),
                **inside(cached_tokens=29000, cache_write_tokens=900),
            }
        ),
        Usage(input=100, cache_read=29000, cache_write_5m=900, output=9),
    ),
]
_READ: list[Row] = [
    ("ai#14889", "mistral", whole({**tokens(801, 2, 803), "num_cached_tokens": 768}), _MISTRAL),
    (
        "ai#14889 in one token's details",
        "mistral",
        whole({**tokens(801, 2, 803), "prompt_token_details": {"cached_tokens": 768}}),
        _MISTRAL,
    ),
    (
        "symfony/ai#2343",
        "mistral",
        chat(word(), stop(usage={**tokens(801, 2, 803), **inside(cached_tokens=768)})),
        _MISTRAL,
    ),
    (
        "ai#14891",
        "mistral",
        whole(
            {
                **tokens(801, 2, 803),
                **inside(cached_tokens=768),
                "num_cached_tokens": 768,
                "prompt_token_details": {"cached_tokens": 768},
            }
        ),
        _MISTRAL,
    ),
    (
        "ai#14889 elsewhere",
        _ANY,
        whole({**tokens(801, 2, 803), "num_cached_tokens": 768}),
        _MISTRAL,
    ),
    (
        "gateway#1567",
        _ANY,
        whole({**tokens(9, 5, 17116), **inside(cached_tokens=17102)}),
        Usage(input=9, cache_read=17102, output=5),
    ),
    (
        "chatcli#1558",
        _ANY,
        whole({**tokens(2, 53, 55), **inside(cached_tokens=19130)}),
        Usage(input=2, cache_read=19130, output=53),
    ),
    (
        "cached beside, by the total",
        _ANY,
        whole({**tokens(100, 5, 155), **inside(cached_tokens=50)}),
        Usage(input=100, cache_read=50, output=5),
    ),
    (
        "written beside, by the total",
        _ANY,
        whole({**tokens(100, 5, 205), **inside(cache_write_tokens=100)}),
        Usage(input=100, cache_write_5m=100, output=5),
    ),
    (
        "coder#23210",
        "openai",
        whole({**tokens(2006, 300, 2306), **inside(cached_tokens=1920)}),
        Usage(input=86, cache_read=1920, output=300),
    ),
    (
        "litellm#14874",
        "xai",
        whole({**tokens(2739, 5, 2744), **inside(text_tokens=2739, cached_tokens=2634)}),
        Usage(input=105, cache_read=2634, output=5),
    ),
    (
        "new-api#5671",
        _ANY,
        chat(
            word(),
            stop(),
            used(
                **tokens(3513, 1246, 4759),
                **inside(cached_tokens=3328),
                completion_tokens_details={"reasoning_tokens": 618},
            ),
        ),
        Usage(input=185, cache_read=3328, output=1246),
    ),
    (
        "oh-my-pi#5022",
        _ANY,
        chat(
            word(),
            stop(usage={"prompt_tokens": 35227, "completion_tokens": 5}),
            used(**tokens(35227, 5, 35232), **inside(cached_tokens=32512)),
        ),
        Usage(input=2715, cache_read=32512, output=5),
    ),
    (
        "oh-my-pi#5022 the other way round",
        _ANY,
        chat(
            word(usage={**tokens(35227, 1, 35228), **inside(cached_tokens=32512)}),
            stop(),
            used(**tokens(35227, 5, 35232)),
        ),
        Usage(input=2715, cache_read=32512, output=5),
    ),
    (
        "ai#12352",
        "moonshot",
        chat(
            word(), {"choices": [{**stop()["choices"][0], "usage": {**_USED, "cached_tokens": 8}}]}
        ),
        Usage(input=12, cache_read=8, output=5),
    ),
]


@pytest.mark.parametrize("rows", [_WRITTEN, _READ], ids=["written", "read"])
async def test_cache_of_a_chat_costs_what_it_used(
    tmp_path: Path, scripted: ScriptedProvider, rows: list[Row]
) -> None:
    async with a_priced_meter(tmp_path, scripted) as meter:
        assert await meter.wrong("chat", rows) == {}
        assert (await meter.house.verdict()).whole
