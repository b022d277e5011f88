"""Usage in chats as public bug reports have seen it: each row the smallest answer of one, and the right reading.

The reports are about gateways and meters that read the same wire; a row's name is the report's.
"""

from typing import Any

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy import small_answers
from tests.metering_proxy.small_answers import chat, events, stop, tokens, used, whole, word

_ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
_USED = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
_PLAIN = Usage(input=20, output=5)
_FILTER = {
    "id": "",
    "model": "",
    "choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}}],
}


def _reasoned(tokens: int) -> dict[str, Any]:
    return {"completion_tokens_details": {"reasoning_tokens": tokens}}


_CACHED_AUDIO = {
    "cached_tokens": 50,
    "audio_tokens": 60,
    "text_tokens": 40,
    "cached_tokens_details": {"audio_tokens": 50, "text_tokens": 0},
}
_XAI = tokens(10120, 1499, 14428, prompt_tokens_details={"cached_tokens": 128}, **_reasoned(2809))


# Thoughts that are told beside the output, or only by the total.
_THOUGHTS = [
    (
        "CLIProxyAPI#5733",
        "openai_compatible",
        whole(tokens(21, 0, 81, **_reasoned(60))),
        Usage(input=21, output=60, reasoning=60),
    ),
    (
        "CLIProxyAPI#5733 as OpenAI",
        "openai",
        whole(tokens(21, 0, 81, **_reasoned(60))),
        Usage(input=21, output=60, reasoning=60),
    ),
    (
        "any-llm#1290",
        "google",
        whole(tokens(20, 198, 623)),
        Usage(input=20, output=603, reasoning=405),
    ),
    (
        "clarifai-python#978",
        "openai_compatible",
        whole(tokens(20, 424, 1016)),
        Usage(input=20, output=996, reasoning=572),
    ),
    (
        "litellm#39426",
        "openai_compatible",
        chat(word(), stop(), used(**tokens(12, 1, 110))),
        Usage(input=12, output=98, reasoning=97),
    ),
    (
        "sub2api#5771",
        "xai",
        whole(_XAI),
        Usage(input=9992, cache_read=128, output=4308, reasoning=2809),
    ),
    (
        "hermes-agent#61871",
        "deepseek",
        whole(tokens(100, 5, 105, prompt_cache_hit_tokens=20, **_reasoned(3))),
        Usage(input=80, cache_read=20, output=5, reasoning=3),
    ),
    (
        "helicone#5805",
        "openai",
        whole(
            tokens(
                10,
                100,
                110,
                completion_tokens_details={
                    "accepted_prediction_tokens": 60,
                    "rejected_prediction_tokens": 20,
                },
            )
        ),
        Usage(input=10, output=100),
    ),
    (
        "total for output",
        "openai_compatible",
        whole({"prompt_tokens": 10, "total_tokens": 15}),
        Usage(input=10, output=5),
    ),
    # Here the rest of the total is what was heard, by the provider's own reference.
    (
        "mistral audio",
        "mistral",
        whole(tokens(4, 635, 3264, prompt_audio_seconds=203)),
        Usage(input=4, output=635),
    ),
]
# What was never filled in, or comes and goes.
_PLACES = [
    (
        "CLIProxyAPI#4053",
        "openai_compatible",
        chat(word(usage=_ZERO), stop(), used(**_USED)),
        _PLAIN,
    ),
    ("bifrost#5604", "openai_compatible", chat(word(), stop(usage=_USED), used(**_ZERO)), _PLAIN),
    ("litellm#37994", "openai_compatible", chat(word(), stop(), used(**_ZERO)), Usage()),
    ("litellm#37994 whole", "openai_compatible", whole(_ZERO), Usage()),
    (
        "auto_ai_router#142",
        "openai_compatible",
        chat(word(), stop(), used(**tokens(0, 5, 5))),
        None,
    ),
    (
        "openai-agents-python#2126",
        "openai_compatible",
        chat(word(), word(usage=_USED), stop()),
        _PLAIN,
    ),
    (
        "CLIProxyAPI#3221",
        "minimax",
        chat(word(usage=None), stop(usage=None), used(**_USED)),
        _PLAIN,
    ),
    (
        "CliRelay#522",
        "openai_compatible",
        chat(word(), stop(usage=_USED), used(**_USED, prompt_tokens_details={"cached_tokens": 18})),
        Usage(input=2, cache_read=18, output=5),
    ),
    (
        "InsForge#2015",
        "openrouter",
        chat(*(word(usage=tokens(90, n, 90 + n)) for n in (1, 5, 10)), stop()),
        Usage(input=90, output=10),
    ),
    ("camel#4217", "groq", chat(word(usage=_USED), stop(usage=_USED), used(**_USED)), _PLAIN),
    (
        "in bits",
        "openai_compatible",
        chat(word(), used(prompt_tokens=20), used(completion_tokens=5)),
        _PLAIN,
    ),
    (
        "openai-node#1982",
        "openai_compatible",
        chat(
            {"choices": [], "prompt_filter_results": [{}]},
            word(),
            _FILTER,
            stop(),
            used(**_USED),
            _FILTER,
        ),
        _PLAIN,
    ),
    (
        "any-llm#1204",
        "glm",
        chat(word(), stop("model_context_window_exceeded", usage=_USED)),
        _PLAIN,
    ),
]
# How a stream ends, with or without its last line.
_ENDS = [
    (
        "agentgateway#3455",
        "glm",
        events(word(), {"choices": [{"finish_reason": "stop"}], "usage": _USED}),
        _PLAIN,
    ),
    (
        "usage behind the stop",
        "openai_compatible",
        events(word(), stop(), word("", usage=_USED)),
        _PLAIN,
    ),
    (
        "filter behind the usage",
        "openai_compatible",
        events(word(), stop(), used(**_USED), _FILTER),
        _PLAIN,
    ),
    ("words behind the usage", "openai_compatible", events(word(usage=_USED), word()), None),
]
# Other names, and what is inside of what.
_NAMES = [
    (
        "CLIProxyAPI#3221 names",
        "openai_compatible",
        whole(
            {"input_tokens": 20, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}}
        ),
        Usage(input=16, cache_read=4, output=5),
    ),
    (
        "langwatch#7048",
        "openai",
        whole(tokens(100, 10, 110, prompt_tokens_details=_CACHED_AUDIO)),
        Usage(input=40, audio_cache_read=50, audio_input=10, output=10),
    ),
    (
        "opencode#44229",
        "openai",
        whole(
            tokens(
                2600,
                300,
                2900,
                prompt_tokens_details={"cached_tokens": 2000, "cache_write_tokens": 400},
            )
        ),
        Usage(input=200, cache_read=2000, cache_write_5m=400, output=300),
    ),
    (
        "litellm#16009",
        "deepseek",
        whole(tokens(100, 5, 105, prompt_tokens_details=None, completion_tokens_details=None)),
        Usage(input=100, output=5),
    ),
    (
        "cache beside the input",
        "openai_compatible",
        whole(tokens(9, 5, 17_116, cache_read_input_tokens=17_102)),
        Usage(input=9, cache_read=17_102, output=5),
    ),
    (
        "litellm#11789",
        "openai_compatible",
        whole(
            tokens(
                2459,
                23,
                2482,
                cache_read_input_tokens=2455,
                prompt_tokens_details={"cached_tokens": 0},
            )
        ),
        Usage(input=4, cache_read=2455, output=23),
    ),
    (
        "more in the cache than the input",
        "openai_compatible",
        whole({"prompt_tokens": 9, "completion_tokens": 5, "cache_read_input_tokens": 17_102}),
        Usage(input=9, cache_read=17_102, output=5),
    ),
]


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [pytest.param(*row, id=name) for name, *row in (*_THOUGHTS, *_PLACES, *_ENDS, *_NAMES)],
)
def test_usage_of_a_chat_is_read_rightly(kind: str, body: bytes, expected: Usage | None) -> None:
    small_answers.check("openai_chat", kind, body, expected)
