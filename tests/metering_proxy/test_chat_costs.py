"""Chats as further public bug reports have seen them, each charged to the nano through a whole meter.

A row's name is the report's: they are about gateways and meters that read the same wire.
"""

from pathlib import Path

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy.answer_costs import Row, a_priced_meter
from tests.metering_proxy.small_answers import chat, events, inside, stop, tokens, used, whole, word
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_PLAIN = Usage(input=20, output=5)
_USED = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
_ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
_ANY = "openai_compatible"
_NAMES: list[Row] = [
    (
        "litellm#18541",
        _ANY,
        whole({**tokens(0, 0, 1079), "input_tokens": 23, "output_tokens": 1056}),
        Usage(input=23, output=1056),
    ),
    (
        "new-api#6212",
        _ANY,
        chat(
            word(),
            stop(),
            used(
                **tokens(1536, 171, 1707),
                **inside(cached_tokens=0, text_tokens=0, audio_tokens=0, image_tokens=0),
                input_tokens=0,
                output_tokens=0,
                input_tokens_details=None,
                claude_cache_creation_5_m_tokens=0,
                claude_cache_creation_1_h_tokens=0,
            ),
        ),
        Usage(input=1536, output=171),
    ),
    (
        "zeros above, numbers in the choice",
        _ANY,
        chat(
            word(),
            {"choices": [{**stop()["choices"][0], "usage": _USED}], "usage": _ZERO},
        ),
        _PLAIN,
    ),
    (
        "groq, its own above zeros",
        "groq",
        chat(word(), stop(usage=_ZERO, x_groq={"usage": _USED})),
        _PLAIN,
    ),
    (
        "input first, output last",
        _ANY,
        chat(word(usage=tokens(20, 0, 20)), stop(), used(**tokens(0, 5, 5))),
        _PLAIN,
    ),
    (
        "input first, output alone",
        _ANY,
        chat(word(), used(prompt_tokens=20), stop(), used(completion_tokens=5)),
        _PLAIN,
    ),
    (
        "apisix#13662",
        _ANY,
        whole({**_USED, "total_tokens": 5}),
        _PLAIN,
    ),
    (
        "odysseus#1703",
        _ANY,
        chat(
            word(),
            {
                "choices": [
                    {"delta": {"role": "assistant", "content": None}, "finish_reason": "stop"}
                ],
                "usage": _USED,
            },
        ),
        _PLAIN,
    ),
    (
        "sglang#15562",
        _ANY,
        whole({**tokens(20, 50, 70), "reasoning_tokens": 30, "prompt_tokens_details": None}),
        Usage(input=20, output=50),
    ),
    (
        "open-webui-cost-tracker#6",
        "perplexity",
        whole(
            {
                **tokens(108, 3256, 3364),
                "citation_tokens": 7299,
                "num_search_queries": 74,
                "reasoning_tokens": 73248,
            }
        ),
        Usage(input=108, output=3256 + 73248, web_searches=74),
    ),
    (
        "litellm#8349",
        _ANY,
        chat(word(usage=_ZERO), stop(usage=_ZERO), used(**_USED)),
        _PLAIN,
    ),
    (
        "vllm#8625",
        _ANY,
        chat(*(word(usage=tokens(20, n, 20 + n)) for n in (1, 3, 4)), stop(), used(**_USED)),
        _PLAIN,
    ),
    (
        "agentgateway, numbers in quotes",
        _ANY,
        whole({"prompt_tokens": "20", "completion_tokens": "5", "total_tokens": "25"}),
        _PLAIN,
    ),
    (
        "langchainjs#6885",
        _ANY,
        chat(word(usage=None), word(usage={}), stop(usage=None), used(**_USED)),
        _PLAIN,
    ),
]
_LATE: list[Row] = [
    ("OmniRoute#9750", _ANY,
     chat(word(), {"choices": [{"index": 0, "delta": {}}],
                   "usage": {**tokens(287, 8, 295), **inside(cached_tokens=256)}}),
     Usage(input=31, cache_read=256, output=8)),
    ("otoroshi#178", _ANY,
     chat(word(""), stop("tool_calls"), {"choices": [], "usage": {"prompt_tokens": 13, "total_tokens": 479,
                                                                   "completion_tokens": 466}}),
     Usage(input=13, output=466)),
    ("opensecret#219", _ANY,
     chat(*(word(usage=tokens(90, n, 90 + n)) for n in (1, 2, 3)), stop(usage=tokens(90, 4, 94)),
          used(**inside(cached_tokens=64))), Usage(input=26, cache_read=64, output=4)),
    ("Containarium#788", _ANY, chat(word(usage=tokens(64, 13, 77)), stop(), used(**tokens(64, 20, 84))),
     Usage(input=64, output=20)),
    ("facility#232", "openai", chat(word(), stop(), used(**tokens(1000, 10, 1010), **inside(cached_tokens=900))),
     Usage(input=100, cache_read=900, output=10)),
    ("opencode, both thoughts and words", "deepseek",
     chat(word(), stop("length", usage={**tokens(84, 8, 92), "cached_tokens": 0, "reasoning_tokens": 8})),
     Usage(input=84, output=8)),
]  # fmt: skip
_TIERS: list[Row] = [
    ("tier in capitals", "openai", whole(_USED, service_tier="PRIORITY"), Usage(input=20, output=5,
     tier="priority")),
    ("plain tier in capitals", "openai", whole(_USED, service_tier="Default"), _PLAIN),
    ("no tier", "openai", whole(_USED, service_tier=None), _PLAIN),
    ("flex in the last chunk", "openai", chat(word(), stop(), {**used(**_USED), "service_tier": "flex"}),
     Usage(input=20, output=5, tier="flex")),
    ("tier at first, another at last", "openai",
     chat(word(service_tier="auto"), stop(), {**used(**_USED), "service_tier": "priority"}),
     Usage(input=20, output=5, tier="priority")),
    ("tier at first alone", "openai", chat(word(service_tier="flex"), stop(), used(**_USED)),
     Usage(input=20, output=5, tier="flex")),
    ("groq on demand", "groq", whole(_USED, service_tier="on_demand"), _PLAIN),
]  # fmt: skip
_MEDIA: list[Row] = [
    ("opik#7253", "openai",
     whole({**tokens(14, 38, 52), **inside(audio_tokens=10, text_tokens=4),
            "completion_tokens_details": {"audio_tokens": 30, "text_tokens": 8}}),
     Usage(input=4, audio_input=10, output=8, audio_output=30)),
    ("PageSpace#2391", "openai",
     whole({**tokens(200, 116, 316),
            **inside(cached_tokens=128, audio_tokens=100, text_tokens=100,
                      cached_tokens_details={"audio_tokens": 64, "text_tokens": 64}),
            "completion_tokens_details": {"audio_tokens": 86, "text_tokens": 30}}),
     Usage(input=36, cache_read=64, audio_input=36, audio_cache_read=64, output=30, audio_output=86)),
    ("litellm#17410", "openrouter",
     whole({**tokens(10, 1300, 1310), "completion_tokens_details": {"image_tokens": 1290}}),
     Usage(input=10, output=10, image_output=1290)),
    ("cached pictures", _ANY,
     whole({**tokens(1000, 5, 1005), **inside(cached_tokens=600, image_tokens=700,
                                                cached_tokens_details={"image_tokens": 600})}),
     Usage(input=300, cache_read=600, image_input=100, output=5)),
    ("rejected predictions", "openai",
     whole({**tokens(10, 100, 110), "completion_tokens_details": {
         "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 80, "reasoning_tokens": 0}}),
     Usage(input=10, output=100)),
]  # fmt: skip
_MANGLED: list[Row] = [
    ("elasticsearch#153980", _ANY,
     chat(word(), stop(), used(**_USED)).replace(b"\n\n", b"\n"), _PLAIN),
    ("elasticsearch#153980 in part", _ANY,
     events(word()) + events(word(), stop(), used(**_USED)).replace(b"\n\n", b"\n"), _PLAIN),
    ("xuan#194", _ANY, chat(word(), stop(), used(**_USED)).replace(b"\n", b"\r\n"), _PLAIN),
    ("term-llm#487", _ANY, chat(word(), stop(), used(**_USED)).replace(b"data: ", b"data:"), _PLAIN),
    ("spaces behind the end", _ANY, chat(word(), stop(), used(**_USED)).replace(b"[DONE]", b"[DONE] "), _PLAIN),
    ("empty data between", _ANY, chat(word()).replace(b"data: [DONE]", b"data:") + chat(stop(), used(**_USED)),
     _PLAIN),
    ("null between", _ANY, events(word()) + b"data: null\n\n" + chat(stop(), used(**_USED)), _PLAIN),
    ("ids and retries", _ANY,
     b"".join(part + b"\nid: 7\nretry: 3000\n\n" for part in
              chat(word(), stop(), used(**_USED)).split(b"\n\n") if part), _PLAIN),
    ("ccr#1672", _ANY, chat(word("日本語 👩🏽‍🚀 "), word("ünï"), stop(), used(**_USED)), _PLAIN),
    ("ferro-labs#129", _ANY, chat(word("x" * 90_000), stop(), used(**_USED)), _PLAIN),
    ("comments in between", _ANY,
     chat(word(), stop(), used(**_USED)).replace(b"\n\n", b"\n\n: keep-alive\n\n"), _PLAIN),
    ("more behind the end", _ANY, chat(word(), stop()) + events(used(**_USED)), _PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [_NAMES, _LATE, _TIERS, _MEDIA, _MANGLED],
    ids=["names", "late", "tiers", "media", "mangled"],
)
async def test_chat_costs_what_it_used(
    tmp_path: Path, scripted: ScriptedProvider, rows: list[Row]
) -> None:
    async with a_priced_meter(tmp_path, scripted) as meter:
        assert await meter.wrong("chat", rows) == {}
        assert (await meter.house.verdict()).whole
