"""A tool whose effect cannot be known is never run twice, and the person is told."""

import asyncio

import pytest

from agent.app import create_app
from agent.tools.builtin import BUILTIN
from agent.tools.registry import Context, tool
from infra.kit import ids
from tests import scripted as s
from tests.agent.conftest import Home, serving
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Person
from tests.waiting import until


@pytest.mark.parametrize("repeatable", [True, False])
async def test_call_under_way_is_repeated_only_when_that_is_harmless(
    home: Home, meter: ScriptedMeter, repeatable: bool
) -> None:
    began: list[str] = []
    hold = asyncio.Event()

    @tool("Sending", repeatable=repeatable)
    async def send_letter(context: Context, *, to: str) -> str:
        """Sends a letter."""
        began.append(to)
        await hold.wait()
        return "sent"

    conversation = ids.ulid()
    socket = home.agent / "agent.sock"
    person = Person(socket)
    tools = (*BUILTIN, send_letter)
    meter.then(reply=s.calls(s.call("send_letter", to="Ana")))
    async with serving(create_app(home.settings(), tools=tools), socket):
        turn = (await person.say("send it", conversation))["turn_id"]
        await until(lambda: began == ["Ana"])
    hold.set()
    if repeatable:
        meter.then(s.has_result("sent"), reply=s.text("Sent."))
    async with serving(create_app(home.settings(), tools=tools), socket):
        frames = await person.ended(turn)
        message = frames[-1]["message"]
        if repeatable:
            assert (began, message["text"]) == (["Ana", "Ana"], "Sent.")
            return
        assert began == ["Ana"]
        assert frames[-1]["code"] == "interrupted"
        assert message["tools"][0]["state"] == "failed"
        assert "not known" in message["tools"][0]["result_preview"]
        meter.then(
            s.has_result("not known"), s.last_contains("was it sent?"), reply=s.text("Unclear.")
        )
        assert (await person.answer_to("was it sent?", conversation))["text"] == "Unclear."
