"""Usage of responses, pictures and embeddings in public bug reports: each row is one of them, as small as can be.

The reports are about gateways and meters that read the same wire; a row's name is the report's.
"""

import json
from typing import Any

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy import small_answers
from tests.metering_proxy.small_answers import events

_USED = {
    "input_tokens": 20,
    "output_tokens": 5,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 2},
}
_AS_USED = Usage(input=16, cache_read=4, output=5, reasoning=2)
_SPOKE = {"type": "response.output_text.delta", "delta": "x" * 400}


def _call(action: str | None) -> dict[str, Any]:
    told_action = {"action": {"type": action}} if action else {}
    return {"type": "web_search_call", "status": "completed", **told_action}


def _ends(how: str, usage: Any = _USED, *before: dict[str, Any]) -> bytes:
    response = {"model": "m", "status": how, "usage": usage}
    return events(_SPOKE, *before, {"type": f"response.{how}", "response": response})


def _called(action: str) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": _call(action)}


_RESPONSES = [
    ("cockpit-tools#2328", _ends("done"), _AS_USED),
    ("cancelled", _ends("cancelled"), _AS_USED),
    ("openai-agents-python#4901", _ends("incomplete"), _AS_USED),
    (
        "litellm#35949",
        _ends("completed", _USED, *map(_called, ("search", "open_page", "find_in_page"))),
        _AS_USED.with_searches(1),
    ),
    (
        "litellm#35949 whole",
        json.dumps(
            {
                "status": "completed",
                "usage": _USED,
                "output": [*map(_call, ("search", "open_page", None))],
            }
        ).encode(),
        _AS_USED.with_searches(2),
    ),
    (
        "CLIProxyAPI#5746",
        _ends("completed", {"input_tokens": 20, "output_tokens": 5, "total_tokens": 80}),
        Usage(input=20, output=60, reasoning=55),
    ),
    ("litellm#37994", _ends("completed", {"input_tokens": 0, "output_tokens": 0}), Usage()),
    ("CLIProxyAPI#2179", _ends("completed", None), None),
    (
        "CLIProxyAPI#3221",
        _ends("completed", {"prompt_tokens": 20, "completion_tokens": 5}),
        Usage(input=20, output=5),
    ),
    (
        "laravel/ai#846",
        _ends(
            "completed",
            {
                "input_tokens": 18_014,
                "output_tokens": 5,
                "input_tokens_details": {"cache_write_tokens": 18_011, "cached_tokens": 0},
            },
        ),
        Usage(input=3, cache_write_5m=18_011, output=5),
    ),
]


@pytest.mark.parametrize(
    ("body", "expected"), [pytest.param(*row, id=name) for name, *row in _RESPONSES]
)
def test_usage_of_a_response_is_read_rightly(body: bytes, expected: Usage | None) -> None:
    small_answers.check("openai_responses", "openai_compatible", body, expected)


def test_response_that_is_done_because_it_failed_has_failed() -> None:
    response = {"status": "failed", "usage": _USED}
    body = events({"type": "response.done", "response": response})
    found = small_answers.read("openai_responses", "openai_compatible", body, len(body))
    assert (found.failed, found.reported_usage) == (True, _AS_USED)


_IMAGES = [
    (
        "litellm#31142",
        {
            "input_tokens": 3987,
            "input_tokens_details": {"text_tokens": 943, "image_tokens": 3044},
            "output_tokens": 5000,
        },
        Usage(input=943, image_input=3044, image_output=5000),
    ),
    (
        "helicone#5003",
        {
            "input_tokens_details": {"text_tokens": 50, "image_tokens": 100},
            "prompt_tokens": 150,
            "completion_tokens": 4200,
        },
        Usage(input=50, image_input=100, image_output=4200),
    ),
    (
        "litellm#13847",
        {"input_tokens": 150, "output_tokens": 8000, "input_tokens_details": {"text_tokens": 150}},
        Usage(input=150, image_output=8000),
    ),
    (
        "both-told",
        {
            "input_tokens": 50,
            "output_tokens": 1320,
            "output_tokens_details": {"image_tokens": 1120, "text_tokens": 200},
        },
        Usage(input=50, output=200, image_output=1120),
    ),
    (
        "text-alone-told",
        {"input_tokens": 50, "output_tokens": 1320, "output_tokens_details": {"text_tokens": 200}},
        Usage(input=50, output=200, image_output=1120),
    ),
    (
        "told-as-in-chats",
        {
            "prompt_tokens": 50,
            "completion_tokens": 1320,
            "completion_tokens_details": {"text_tokens": 200},
        },
        Usage(input=50, output=200, image_output=1120),
    ),
    (
        "less-told-than-there-is",
        {
            "input_tokens": 50,
            "output_tokens": 1320,
            "output_tokens_details": {"image_tokens": 1000, "text_tokens": 200},
        },
        Usage(input=50, output=200, image_output=1120),
    ),
    (
        "more-text-told-than-there-is",
        {
            "input_tokens": 50,
            "output_tokens": 1320,
            "output_tokens_details": {"image_tokens": 1120, "text_tokens": 9000},
        },
        Usage(input=50, output=200, image_output=1120),
    ),
]


@pytest.mark.parametrize(
    ("usage", "expected"), [pytest.param(*row, id=name) for name, *row in _IMAGES]
)
def test_usage_of_pictures_is_read_rightly(usage: dict[str, Any], expected: Usage) -> None:
    body = json.dumps({"data": [{"b64_json": "x"}], "usage": usage}).encode()
    small_answers.check("openai_images", "openai", body, expected.with_units(1, "image"))


_EMBEDDINGS = [
    ("ctx#14", {"total_tokens": 8}, Usage(input=8)),
    ("null", {"prompt_tokens": None, "total_tokens": 8}, Usage(input=8)),
    ("zero", {"prompt_tokens": 0, "total_tokens": 0}, Usage()),
    ("nothing", None, None),
    ("OpenAI", {"prompt_tokens": 8, "total_tokens": 8}, Usage(input=8)),
]


@pytest.mark.parametrize(
    ("usage", "expected"), [pytest.param(*row, id=name) for name, *row in _EMBEDDINGS]
)
def test_usage_of_embeddings_is_the_total_where_nothing_else_is_told(
    usage: dict[str, Any] | None, expected: Usage | None
) -> None:
    body = json.dumps({"data": [{"embedding": [0.1]}], "usage": usage}).encode()
    small_answers.check("openai_embeddings", "openai_compatible", body, expected)
