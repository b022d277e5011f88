"""Usage of messages as public bug reports have seen it: each row is one of them, as small as can be.

The reports are about gateways and meters that read the same wire; a row's name is the report's.
"""

import json
from typing import Any

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy import small_answers
from tests.metering_proxy.small_answers import begun, ended, halted, messages, said

_LONG = said("x" * 400)


def _split(minutes: int, hour: int) -> dict[str, int]:
    return {"ephemeral_5m_input_tokens": minutes, "ephemeral_1h_input_tokens": hour}


def _message(**usage: Any) -> bytes:
    content = [{"type": "text", "text": "hello"}]
    return json.dumps({"type": "message", "content": content, "usage": usage}).encode()


_SOME_WRITTEN = begun(
    input_tokens=100,
    output_tokens=1,
    cache_creation_input_tokens=556,
    cache_creation=_split(456, 100),
)
_MESSAGES = [
    # A first event that was written before anybody had looked into the cache.
    (
        "bifrost#6598",
        messages(
            begun(input_tokens=1000, output_tokens=0),
            said(),
            ended(input_tokens=0, cache_read_input_tokens=1000, output_tokens=5),
        ),
        Usage(cache_read=1000, output=5),
    ),
    (
        "adk-utils-go#32",
        messages(
            begun(input_tokens=17_111, output_tokens=1),
            said(),
            ended(input_tokens=9, cache_read_input_tokens=17_102, output_tokens=5),
        ),
        Usage(input=9, cache_read=17_102, output=5),
    ),
    (
        "private-ai-gateway#194",
        messages(
            begun(input_tokens=10, cache_read_input_tokens=7, output_tokens=0),
            said(),
            ended(input_tokens=0, cache_read_input_tokens=0, output_tokens=4),
        ),
        Usage(input=10, cache_read=7, output=4),
    ),
    (
        "more in the cache than before",
        messages(
            begun(input_tokens=9, cache_read_input_tokens=1, output_tokens=0),
            said(),
            ended(input_tokens=0, cache_read_input_tokens=12, output_tokens=4),
        ),
        Usage(input=9, cache_read=12, output=4),
    ),
    # Writes that change their lifetime, or that are told twice.
    (
        "sub2api#6125",
        messages(
            begun(
                input_tokens=3,
                cache_creation_input_tokens=463_184,
                cache_creation=_split(463_184, 0),
            ),
            said(),
            ended(
                cache_creation_input_tokens=463_184,
                cache_creation=_split(0, 463_184),
                output_tokens=5,
            ),
        ),
        Usage(input=3, cache_write_1h=463_184, output=5),
    ),
    (
        "sub2api#6125 at once",
        _message(
            input_tokens=3,
            cache_creation_input_tokens=1000,
            cache_creation=_split(1000, 1000),
            output_tokens=5,
        ),
        Usage(input=3, cache_write_1h=1000, output=5),
    ),
    (
        "split without a sum",
        _message(input_tokens=3, cache_creation=_split(700, 300), output_tokens=5),
        Usage(input=3, cache_write_5m=700, cache_write_1h=300, output=5),
    ),
    (
        "anthropic-sdk-typescript#793",
        messages(
            _SOME_WRITTEN,
            said(),
            ended(input_tokens=651, cache_creation_input_tokens=7345, output_tokens=9),
        ),
        Usage(input=651, cache_write_5m=456 + 6789, cache_write_1h=100, output=9),
    ),
    # What was begun is not what was counted.
    (
        "auto_ai_router#142",
        messages(begun(input_tokens=0, output_tokens=0), said(), ended(output_tokens=12)),
        None,
    ),
    ("end without usage", messages(begun(input_tokens=25, output_tokens=1), _LONG, halted()), None),
    (
        "end with null",
        messages(begun(input_tokens=25, output_tokens=0), _LONG, halted(usage=None)),
        None,
    ),
    (
        "end in another's words",
        messages(begun(input_tokens=10, output_tokens=1), _LONG, ended(completion_tokens=4)),
        None,
    ),
    ("litellm#37994", _message(input_tokens=0, output_tokens=0), Usage()),
    ("archestra#5914", _message(input_tokens=0, output_tokens=9), None),
    (
        "fully cached",
        messages(
            begun(input_tokens=0, cache_read_input_tokens=2000, output_tokens=1),
            said(),
            ended(output_tokens=5),
        ),
        Usage(cache_read=2000, output=5),
    ),
    (
        "LibreChat-AI/agents#150",
        messages(
            begun(input_tokens=10, output_tokens=1),
            said(),
            ended(output_tokens=4),
            ended(output_tokens=9),
        ),
        Usage(input=10, output=9),
    ),
    (
        "one-api-pro#13",
        messages(
            begun(input_tokens=27, output_tokens=2),
            said(),
            ended(
                input_tokens=27,
                cache_creation_input_tokens=0,
                cache_read_input_tokens=0,
                output_tokens=47,
            ),
        ),
        Usage(input=27, output=47),
    ),
    (
        "talon#196",
        messages(
            begun(input_tokens=8, output_tokens=0, server_tool_use=None, cache_creation=None),
            said(),
            ended(output_tokens=16),
        ),
        Usage(input=8, output=16),
    ),
]


@pytest.mark.parametrize(
    ("body", "expected"), [pytest.param(*row, id=name) for name, *row in _MESSAGES]
)
def test_usage_of_a_message_is_read_rightly(body: bytes, expected: Usage | None) -> None:
    small_answers.check("anthropic_messages", "anthropic_compatible", body, expected)
