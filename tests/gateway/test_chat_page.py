"""The chat page comes at once, whatever the meter does."""

import html
import json
import re
import time
from typing import Any

import pytest

from gateway.quota import GLANCE_S
from tests.gateway.browser import Page
from tests.gateway.conftest import Gateway


def _boot(page: Page) -> dict[str, Any]:
    [raw] = re.findall(r'id="boot">(.*?)</script>', page.text)
    found: dict[str, Any] = json.loads(html.unescape(raw))
    return found


async def test_chat_page_says_what_the_meter_knows(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    boot = _boot(await ada.visit("/chat"))
    assert (boot["plan"], boot["demo_model"], boot["meter_away"]) == ("Free", True, False)


@pytest.mark.slow  # measures time
async def test_chat_page_comes_within_a_second_when_the_meter_hangs(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    gateway.meter.hangs = True
    started = time.monotonic()
    page = await ada.visit("/chat")
    assert GLANCE_S <= time.monotonic() - started < GLANCE_S + 1
    assert page.status == 200
    boot = _boot(page)
    assert (boot["plan"], boot["demo_model"], boot["meter_away"]) == ("Free", True, True)
    gateway.meter.hangs = False


@pytest.mark.parametrize("known", [False, True])
async def test_chat_page_keeps_what_was_known_when_the_meter_is_away(
    gateway: Gateway, known: bool
) -> None:
    ada = await gateway.person("ada@example.org")
    if known:
        await ada.visit("/chat")
    gateway.meter.away = True
    boot = _boot(await ada.visit("/chat"))
    assert (boot["plan"], boot["demo_model"]) == ("Free", known)
