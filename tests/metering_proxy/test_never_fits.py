"""A request for which a limit would have no room even if nothing were used is told so, and not to come back."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors as google_errors
from google.genai import types

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from metering_proxy import wire
from metering_proxy.grants import Grants
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.ops import Refused, Reserve, Window
from tests import scripted as s
from tests.metering_proxy.books import MONTH, ask, end, hold_of, windows
from tests.metering_proxy.clients import anthropic_client, google_client, openai_client
from tests.metering_proxy.house import MODEL, House
from tests.scripted import ScriptedProvider

Clocked = tuple[Database, Ledger]
_SAID: Any = [{"role": "user", "content": "hi"}]


def _ask(*limits: tuple[str, int], wanted: int = 1_000) -> Reserve:
    """A request of 100 input tokens and 100,000 nano-USD, and of 2,000 for each of `wanted` tokens of output."""
    windows = tuple(
        Window(kind, kind.partition("_")[0], MONTH, MONTH + 60_000, limit)  # type: ignore[arg-type]
        for kind, limit in limits
    )
    return replace(ask("a", wanted=wanted), windows=windows)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ([("charge_month", 611_999)], ("charge_month", "charge", 611_999, 255)),
        ([("charge_day", 99_999)], ("charge_day", "charge", 99_999, -1)),
        ([("tokens_minute", 355)], ("tokens_minute", "tokens", 355, 255)),
        ([("tokens_minute", 99)], ("tokens_minute", "tokens", 99, -1)),
        # What it says must fit all of them, so the smallest is named.
        ([("charge_month", 500_000), ("tokens_day", 150)], ("tokens_day", "tokens", 150, 50)),
        ([("tokens_day", 150), ("charge_month", 500_000)], ("tokens_day", "tokens", 150, 50)),
        ([("requests_day", 0)], ("requests_day", "requests", 0, -1)),
    ],
)
async def test_what_no_new_window_could_bear_is_refused_with_what_would_fit(
    clocked: Clocked, limits: Sequence[tuple[str, int]], told: tuple[str, str, int, int]
) -> None:
    db, ledger = clocked
    kind, measure, limit, fits = told
    assert await ledger.reserve(_ask(*limits)) == Refused(kind, measure, None, limit, fits)
    assert {held for _, held in (await windows(db)).values()} == {0}


@pytest.mark.parametrize("limits", [[("charge_month", 612_000)], [("tokens_minute", 356)]])
async def test_what_a_new_window_can_bear_in_part_is_clamped_before_it_is_refused(
    clocked: Clocked, limits: Sequence[tuple[str, int]]
) -> None:
    _, ledger = clocked
    hold = await hold_of(ledger, _ask(*limits))
    assert hold.limit == 256
    again = await ledger.reserve(_ask(*limits))
    assert isinstance(again, Refused)
    assert (again.resets_at, again.fits) == (MONTH + 60_000, None)


async def test_what_is_said_to_fit_fits(clocked: Clocked) -> None:
    _, ledger = clocked
    limits = (("charge_month", 500_000), ("tokens_day", 150))
    refused = await ledger.reserve(_ask(*limits))
    assert isinstance(refused, Refused)
    assert refused.fits is not None
    assert isinstance(await ledger.reserve(_ask(*limits, wanted=refused.fits + 1)), Refused)
    assert isinstance(await ledger.reserve(_ask(*limits, wanted=refused.fits)), Hold)


async def test_what_never_fits_one_limit_is_not_sent_to_wait_for_another(clocked: Clocked) -> None:
    _, ledger = clocked
    used_up = ("requests_day", 1)
    await ledger.settle(end(await hold_of(ledger, _ask(used_up))))
    assert await ledger.reserve(_ask(used_up, ("tokens_minute", 200))) == Refused(
        "tokens_minute", "tokens", None, 200, 100
    )


async def test_credit_counts_as_room_even_while_a_running_call_holds_it(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    request = wire.GrantRequest(amount_nanos=600_000)
    await Grants(db, clock).put("a", "gift", request)
    poor = ("charge_month", 100_000)
    hold = await hold_of(ledger, _ask(poor))
    assert hold.charge_held_nanos == 700_000
    waits = await ledger.reserve(_ask(poor))
    assert waits == Refused("charge_month", "charge", MONTH + 60_000, 100_000)
    await ledger.settle(end(hold, 300))
    spent = await ledger.reserve(_ask(poor))
    assert spent == Refused("charge_month", "charge", None, 100_000, 25)


_WIRES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "chat": ("openai_compatible", "/v1/chat/completions",
             {"model": MODEL, "max_completion_tokens": 900, "messages": _SAID}, "max_completion_tokens"),
    "chat_without_a_limit": ("openai_compatible", "/v1/chat/completions",
                             {"model": MODEL, "messages": _SAID}, "max_tokens"),
    "responses": ("openai_compatible", "/v1/responses", {"model": MODEL, "input": "hi"}, "max_output_tokens"),
    "messages": ("anthropic_compatible", "/v1/messages",
                 {"model": MODEL, "max_tokens": 900, "messages": _SAID}, "max_tokens"),
    "gemini": ("google", f"/v1beta/models/{MODEL}:generateContent",
               {"contents": [{"parts": [{"text": "hi"}]}]}, "generationConfig.maxOutputTokens"),
}  # fmt: skip


@pytest.mark.parametrize("name", _WIRES)
async def test_caller_is_told_in_its_own_shape_what_to_lower(
    house: House, scripted: ScriptedProvider, name: str
) -> None:
    kind, path, body, member = _WIRES[name]
    await house.connect(scripted, kind)
    small = await house.tenant("free", tokens_minute=250)
    answer = await small.post(path, body)
    assert answer.status == 413
    assert answer.headers["x-alcove-reason"] == "larger_than_tokens_minute"
    assert answer.headers["x-should-retry"] == "false"
    assert not {"retry-after", "x-alcove-resets-at"} & {name.lower() for name in answer.headers}
    error = json.loads(answer.body)["error"]
    assert f"the plan allows 250 a minute: waiting does not help; send less, or lower {member} to" in (
        error["message"]
    )  # fmt: skip
    assert (error.get("code"), error.get("type"), error.get("status")) in {
        ("larger_than_tokens_minute", "invalid_request_error", None),
        (None, "request_too_large", None),
        (413, None, "INVALID_ARGUMENT"),
    }
    assert scripted.requests == []
    assert await house.held(small) == 0


async def test_request_without_a_token_limit_is_told_to_send_less(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "openai")
    poor = await house.tenant("free", charge_month_nanos=10_000_000)
    body = {"model": "dall-e-3", "prompt": "a house"}
    answer = await poor.post("/v1/images/generations", body)
    assert (answer.status, answer.headers["x-alcove-reason"]) == (413, "larger_than_charge_month")
    error = json.loads(answer.body)["error"]
    assert error["message"].endswith("send less, ask a cheaper model")
    assert error["param"] is None
    assert scripted.requests == []


async def test_clients_of_openai_and_anthropic_ask_once(
    house: House, scripted: ScriptedProvider
) -> None:
    for kind in ("openai_compatible", "anthropic_compatible"):
        await house.connect(scripted, kind)
    small = await house.tenant("free", tokens_day=20)
    tried: list[str] = []
    async with openai_client(small, tried) as gpt:
        with pytest.raises(openai.APIStatusError) as chat:
            await gpt.chat.completions.create(model=MODEL, messages=_SAID)
    assert (chat.value.status_code, chat.value.code) == (413, "larger_than_tokens_day")
    async with anthropic_client(small, tried) as claude:
        with pytest.raises(anthropic.APIStatusError) as message:
            named = f"scripted-2/{MODEL}"
            await claude.messages.create(model=named, max_tokens=500, messages=_SAID)
    assert message.value.status_code == 413
    assert len(tried) == 2
    assert scripted.requests == []


async def test_googles_client_asks_once(house: House, scripted: ScriptedProvider) -> None:
    await house.connect(scripted, "google")
    small = await house.tenant("free", tokens_day=20)
    tried: list[str] = []
    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.01)
    async with google_client(small, tried, retries) as gemini:
        with pytest.raises(google_errors.ClientError) as content:
            await gemini.models.generate_content(model=MODEL, contents="hi")
    assert content.value.code == 413
    assert len(tried) == 1
    assert scripted.requests == []


async def test_limit_of_nothing_names_no_time_to_come_back(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted)
    for limit, status in (("tokens_minute", 429), ("charge_month_nanos", 402)):
        nothing = await house.tenant("free", **{limit: 0})
        answer = await nothing.chat()
        assert answer.status == status
        assert not {"retry-after", "x-alcove-resets-at"} & {n.lower() for n in answer.headers}
        assert "allow" in json.loads(answer.body)["error"]["message"]
    assert scripted.requests == []


async def test_clamp_is_tried_before_the_refusal(house: House, scripted: ScriptedProvider) -> None:
    scripted.then(reply=s.text("x").using(10, 10))
    await house.connect(scripted)
    small = await house.tenant("free", tokens_minute=600)
    answer = await small.chat(max_tokens=900)
    assert answer.status == 200
    assert 256 <= int(answer.headers["x-alcove-clamped-to"]) < 600
