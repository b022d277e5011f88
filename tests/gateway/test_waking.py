"""What wakes an assistant, and what does not."""

from tests.gateway.conftest import Gateway
from tests.waiting import until

NAVIGATION = {
    "sec-fetch-site": "none",
    "sec-fetch-mode": "navigate",
    "sec-fetch-dest": "document",
    "accept": "text/html",
}


def _wakes(gateway: Gateway) -> list[str]:
    return [call for call in gateway.spawner.calls if call.startswith("wake")]


async def test_opening_the_chat_page_wakes(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    assert _wakes(gateway) == []
    page = await ada.visit("/chat")
    assert page.status == 200
    await until(lambda: _wakes(gateway))
    await until(lambda: any(c.startswith("activity") for c in gateway.spawner.calls))
    boot = page.text.split('id="boot">')[1].split("</script>")[0]
    assert '"demo_model": true' in boot
    assert "ada@example.org" in boot


NO_NAVIGATION = [
    {"sec-purpose": "prefetch"},
    {"sec-purpose": "prefetch;prerender"},
    {"purpose": "prefetch"},
    {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
    {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    {"sec-fetch-dest": "iframe"},
]


async def test_get_that_is_no_navigation_wakes_nobody(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    for changed in NO_NAVIGATION:
        answer = await ada.send("GET", "/chat", headers={**NAVIGATION, **changed})
        assert answer.status == 200
    for path in ("/usage", "/account", "/api/session", "/api/pending-messages"):
        assert (await ada.api("GET", path)).status == 200
    await gateway.parts.background.close()
    assert _wakes(gateway) == []
    assert not any(call.startswith("activity") for call in gateway.spawner.calls)


async def test_persons_act_wakes_a_sleeping_assistant(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    answer = await ada.api("PUT", f"/api/conversations/{'c' * 26}", {"title": "x"})
    assert (answer.status, answer.reason) == (503, "agent_asleep")
    assert len(_wakes(gateway)) == 1
    again = await ada.api("PUT", f"/api/conversations/{'c' * 26}", {"title": "x"})
    assert again.status == 201


async def test_conversation_address_must_look_like_one(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    assert (await ada.visit("/chat/" + "0" * 26)).status == 200
    assert (await ada.visit("/chat/other")).status == 404
