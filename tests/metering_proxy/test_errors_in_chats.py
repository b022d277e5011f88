"""Errors under a good status in chats, in each way in which public bug reports have met them."""

import json

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy import small_answers
from tests.metering_proxy.small_answers import chat, stop, whole, word

_USED = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
_FAILED = [
    (
        "free-claude-code#1543",
        "openai_compatible",
        chat({"object": "error", "message": "Invalid request", "code": 400}),
    ),
    (
        "after words",
        "openai_compatible",
        chat(word(), {"object": "error", "message": "boom", "code": 500}),
    ),
    (
        "guidellm#743",
        "openai_compatible",
        chat({"error": {"message": "TimeoutError", "code": 504}}),
    ),
    ("hermes-agent#92161", "glm", chat(stop("network_error"))),
    ("DeepSeek out of room", "deepseek", chat(stop("insufficient_system_resource"))),
    (
        "GLM's own way",
        "glm",
        chat(word(), {"code": 500, "msg": "404 NOT_FOUND", "success": False}),
    ),
    ("hermes-agent#92161 later", "glm", chat(word(), word(), stop("network_error"))),
    (
        "obsidian-aloud-tts#114",
        "minimax",
        json.dumps(
            {"choices": None, "usage": {"total_tokens": 0}, "base_resp": {"status_code": 1008}}
        ).encode(),
    ),
    (
        "obsidian-aloud-tts#114 stream",
        "minimax",
        chat({"choices": None, "base_resp": {"status_code": 1008}}),
    ),
]


@pytest.mark.parametrize(("kind", "body"), [pytest.param(*row, id=name) for name, *row in _FAILED])
def test_error_under_a_good_status_is_seen_in_whatever_way_it_is_said(
    kind: str, body: bytes
) -> None:
    for size in (7, len(body)):
        assert small_answers.read("openai_chat", kind, body, size).failed


def test_answer_that_says_that_all_is_well_has_not_failed() -> None:
    small_answers.check(
        "openai_chat",
        "minimax",
        whole(_USED, base_resp={"status_code": 0}),
        Usage(input=20, output=5),
    )
