"""Refusals: each in its wire's shape, with the headers by which a client knows whether to try again."""

import json
from typing import Any, get_args

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy.ledger.ops import Refused
from metering_proxy.refusals import refusal
from metering_proxy.tenant_side.no_room import refused
from metering_proxy.wires.wire import Shape
from tests import scripted as s
from tests.metering_proxy.books import ask
from tests.metering_proxy.house import House, Tenant
from tests.scripted import ScriptedProvider

_NOW = 1_000_000
_SHAPES: tuple[Shape, ...] = get_args(Shape)


def _limit(
    kind: str, measure: str, resets_at: int | None, *, limit: int = 5, fits: int | None = None
) -> AlcoveError:
    return refused(Refused(kind, measure, resets_at, limit, fits), ask("a"), "max_tokens")


_UNREACHED = AlcoveError("unavailable", "away", reason="ledger", retry_after_s=1)
# The refusal; its status; `retry-after`; `x-should-retry`; `x-alcove-resets-at`.
_TOLD = [
    (_limit("charge_month", "charge", 9_000_000), 402, None, "false", "9000000"),
    (_limit("tokens_day", "tokens", 9_000_000), 402, None, "false", "9000000"),
    (_limit("requests_minute", "requests", _NOW + 1), 429, "1", "false", "1000001"),
    (_limit("tokens_minute", "tokens", _NOW + 1_001), 429, "2", "false", "1001001"),
    (_limit("charge_minute", "charge", _NOW + 60_000), 429, "60", "false", "1060000"),
    (_limit("concurrent_calls", "concurrent", None), 429, "1", "false", None),
    (_limit("charge_month", "charge", None, fits=-1), 413, None, "false", None),
    (_limit("tokens_minute", "tokens", None, fits=40), 413, None, "false", None),
    (_limit("tokens_minute", "tokens", None, limit=0, fits=-1), 429, None, "false", None),
    (_limit("charge_month", "charge", None, limit=0, fits=-1), 402, None, "false", None),
    (_UNREACHED, 503, "1", None, None),
    (AlcoveError("invalid", "no", reason="model_not_priced"), 400, None, "false", None),
    (AlcoveError("too_large", "no"), 413, None, "false", None),
]


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize(("error", "status", "after", "again", "resets"), _TOLD)
def test_refusal_says_whether_and_when_to_try_again(
    error: AlcoveError, status: int, after: str | None, again: str | None, resets: str | None,
    shape: Shape,
) -> None:  # fmt: skip
    answer = refusal(error, shape, "request-1", _NOW)
    headers = dict(answer.headers)
    assert answer.status == status
    assert headers.get("retry-after") == after
    assert headers.get("x-should-retry") == again
    assert headers.get("x-alcove-resets-at") == resets
    assert headers["x-alcove-reason"] == (error.reason or error.code)


@pytest.mark.parametrize(
    ("kind", "measure", "limit", "fits", "said", "field"),
    [
        ("tokens_minute", "tokens", 300, 200,
         "this request can use 1,100 tokens, and the plan allows 300 a minute: waiting does not help;"
         " send less, or lower max_tokens to 200", "max_tokens"),
        ("tokens_day", "tokens", 90, -1,
         "this request can use 1,100 tokens, and the plan allows 90 a day: waiting does not help; send less",
         None),
        ("charge_month", "charge", 500_000, 200,
         "this request can cost $0.0021, and the plan pays $0.0005 a month: waiting does not help;"
         " send less, ask a cheaper model, or lower max_tokens to 200", "max_tokens"),
        ("charge_minute", "charge", 100_000, 0,
         "this request can cost $0.0021, and the plan pays $0.0001 a minute: waiting does not help;"
         " send less, ask a cheaper model", None),
    ],
)  # fmt: skip
def test_refusal_of_what_never_fits_says_what_would(
    kind: str, measure: str, limit: int, fits: int, said: str, field: str | None
) -> None:
    error = _limit(kind, measure, None, limit=limit, fits=fits)
    assert (error.message, error.details.get("field")) == (said, field)
    assert (error.code, error.reason) == ("too_large", f"larger_than_{kind}")


def _at(body: bytes, *way: str | int) -> Any:
    found: Any = json.loads(body)
    for step in way:
        found = found[step]
    return found


@pytest.mark.parametrize(
    ("status", "openai", "anthropic", "gemini"),
    [
        ("invalid", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
        ("unauthorized", "authentication_error", "authentication_error", "UNAUTHENTICATED"),
        ("quota_exhausted", "insufficient_quota", "billing_error", "FAILED_PRECONDITION"),
        ("forbidden", "permission_error", "permission_error", "PERMISSION_DENIED"),
        ("not_found", "not_found_error", "not_found_error", "NOT_FOUND"),
        ("too_large", "invalid_request_error", "request_too_large", "INVALID_ARGUMENT"),
        ("rate_limited", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"),
        ("unavailable", "api_error", "overloaded_error", "UNAVAILABLE"),
        ("timeout", "api_error", "timeout_error", "DEADLINE_EXCEEDED"),
    ],
)
def test_body_has_the_words_of_its_wire(
    status: str, openai: str, anthropic: str, gemini: str
) -> None:
    error = AlcoveError(status, "a sentence", reason="a_reason", field="max_tokens")
    found = {shape: refusal(error, shape, "request-1", _NOW).body for shape in _SHAPES}
    assert _at(found["openai"], "error") == {
        "message": "a sentence", "type": openai, "param": "max_tokens", "code": "a_reason",
    }  # fmt: skip
    assert _at(found["anthropic"]) == {
        "type": "error",
        "error": {"type": anthropic, "message": "a sentence", "alcove_reason": "a_reason"},
        "request_id": "request-1",
    }
    assert _at(found["gemini"], "error", "status") == gemini
    assert _at(found["gemini"], "error", "details", 0, "reason") == "A_REASON"
    assert _at(found["gemini"], "error", "code") == error.status


# Metering facts 2.6: what clients go by; and what is the operator's own matter.
_PASSED = {
    "retry-after": "17",
    "request-id": "req_1",
    "x-request-id": "req_2",
    **{
        f"anthropic-ratelimit-{what}-{member}": value
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
        for member, value in (("limit", "50"), ("remaining", "0"), ("reset", "2026-01-01T00:00:17Z"))
    },
    **{
        f"x-ratelimit-{member}-{what}": value
        for what in ("requests", "tokens")
        for member, value in (("limit", "60"), ("remaining", "0"), ("reset", "6m0s"))
    },
    "x-should-retry": "true",
}  # fmt: skip
_KEPT = {
    "set-cookie": "a=b",
    "openai-organization": "the operator's",
    "openai-project": "proj_1",
    "x-alcove-reason": "forged",
    "x-alcove-clamped-to": "1",
    "x-alcove-model": "forged",
}


@pytest.mark.parametrize("status", [200, 429])
async def test_what_a_provider_says_of_its_limits_reaches_the_caller_unchanged(
    house: House, tenant: Tenant, scripted: ScriptedProvider, status: int
) -> None:
    given = {**_PASSED, **_KEPT}
    reply = s.text("x") if status == 200 else s.error(429)
    scripted.then(reply=reply.with_headers(**given))
    answer = await tenant.chat()
    assert answer.status == status
    assert {name: answer.headers.get(name) for name in _PASSED} == _PASSED
    assert not set(_KEPT.items()) & {(name.lower(), said) for name, said in answer.headers.items()}
    assert answer.headers["x-alcove-request-id"]


async def test_gemini_says_when_to_try_again_in_its_body(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "google")
    tenant = await house.tenant()
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    told = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    scripted.then(reply=s.Reply(status=429, body=told))
    path = "/v1beta/models/scripted-model:generateContent"
    answer = await tenant.post(path, {"contents": [{"parts": [{"text": "hi"}]}]})
    assert answer.status == 429
    assert json.loads(answer.body) == told
    assert answer.body == b"".join(scripted.requests[-1].sent)
