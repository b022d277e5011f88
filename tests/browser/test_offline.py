"""The browser loses its network in mid-answer and finds it again: nothing lost, nothing doubled, no draft gone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests import scripted as s
from tests.browser.chat_page import ChatPage
from tests.browser.test_story import ADA, last_turn
from tests.journeys import evidence
from tests.journeys.house import House, sqlite_databases
from tests.journeys.line import Line, line
from tests.journeys.processes import free_port

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def network() -> list[Line]:
    """The line to the gateway, once the house stands."""
    return []


@pytest.fixture
async def house(
    tmp_path: Path, deployment: str, scripted: s.ScriptedProvider, network: list[Line]
) -> AsyncIterator[House]:
    """A house whose gateway is reached through a line that can be cut."""
    behind = free_port()
    settings = {"ALCOVE_GATEWAY_LISTEN": f"http://127.0.0.1:{behind}"}
    root = tmp_path / "house"
    built = House(root, deployment, sqlite_databases(tmp_path), settings=settings)
    async with line(built.port, behind) as made:
        network.append(made)
        try:
            await built.start()
            await built.connect(scripted)
            yield built
        finally:
            made.mend()
            await built.close()


async def lose(chat: ChatPage, network: list[Line]) -> None:
    """The network is gone, as the browser knows."""
    network[0].cut()
    await chat.page.context.set_offline(True)


async def find(chat: ChatPage, network: list[Line]) -> None:
    """The network is back, as the browser knows."""
    network[0].mend()
    await chat.page.context.set_offline(False)


async def test_answer_and_draft_are_whole_when_the_browser_was_offline(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage, network: list[Line]
) -> None:
    gates = [s.Gate() for _ in range(3)]
    words = ["The sea ", "is wide ", "and grüß 🌍 ", "deep."]
    parts = [part for pair in zip(words, [*gates, None], strict=True) for part in pair if part]
    scripted.then(s.last_contains("about the sea"), reply=s.text(*parts))
    scripted.then(s.last_contains("and the sky"), reply=s.text("The sky is high."))
    field = chat.page.locator("#composer-text")
    await chat.sign_up(ADA)
    await chat.awake()
    await chat.say("Tell me about the sea")
    for gate, shown in zip(gates, ("The sea", "is wide", "grüß 🌍"), strict=True):
        await gate.reached()
        await chat.shows(shown)
        await lose(chat, network)
        gate.open()
        await field.fill("and the sky?")
        await expect(chat.page.locator("#stop")).to_be_visible()  # of the end it cannot know
        await find(chat, network)
    await chat.shows("deep.")
    await chat.finished()
    await lose(chat, network)
    await field.press("Enter")
    await expect(chat.page.locator(".toast")).to_contain_text("Not sent")
    await expect(field).to_have_value("and the sky?")
    await expect(chat.page.locator("article.message.user")).to_have_count(1)
    await find(chat, network)
    await field.press("Enter")
    await chat.shows("The sky is high.")
    await chat.finished()
    await expect(chat.page.locator("article.message.user")).to_have_count(2)
    tenant = await evidence.tenant_of(house, ADA)
    answers = await chat.answers()
    assert answers == ["The sea is wide and grüß 🌍 deep.", "The sky is high."]
    assert answers[-1] == evidence.text_in_log(house, tenant, await last_turn(house, tenant))
    assert len(scripted.model_requests) == 2
    await evidence.all_settled(house)
