"""What stands around the answers, in a real Chromium: waking, limits, the list, the session, a phone."""

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.pages.conftest import Preview, Tab
from tests.pages.preview import frames
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def test_message_typed_while_waking_is_kept_and_answered(tab: Tab, preview: Preview) -> None:
    preview.assistant.may_wake.clear()
    page = await tab.go("/chat?scene=asleep")
    await expect(page.locator(".wake-card")).to_contain_text("Your assistant is waking up")
    await tab.say("emoji")
    await expect(page.locator("article.message.user.waiting")).to_contain_text(
        "Waiting until your assistant is awake"
    )
    preview.assistant.may_wake.set()
    await tab.finished()
    await expect(page.locator(".wake-card")).to_have_count(0)
    await expect(page.locator("article.message.user.complete")).to_have_count(1)


async def test_failed_wake_offers_another_try_and_discarding(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=stuck")
    await tab.say("Are you there?")
    await expect(page.locator(".card.trouble")).to_contain_text("Your assistant could not wake up")
    await page.locator("article.message.user.failed").get_by_role("button", name="Discard").click()
    await expect(page.locator("article.message.user")).to_have_count(0)
    assert preview.assistant.pending == []


async def test_limit_card_says_when_it_resets_and_goes_when_the_quota_is_raised(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=limit")
    card = page.locator(".card.limit")
    await expect(card).to_contain_text("This month's quota is used up")
    await expect(card).to_contain_text("in 9 days, on ")
    await page.locator("#composer-text").fill("half a thought")
    preview.assistant.percent = 20
    preview.assistant.tell(preview.assistant.quota())
    await expect(card).to_have_count(0)
    await expect(page.locator("#quota")).to_contain_text("$0.80")
    assert await page.locator("#composer-text").input_value() == "half a thought"


async def test_mark_is_told_once_and_the_next_one_anew(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=near")
    card = page.locator(".card.mark")
    await expect(card).to_contain_text("More than 80 % of this month's quota is used")
    await card.get_by_role("button", name="Dismiss").click()
    await expect(card).to_have_count(0)
    await expect(page.locator("#composer-text")).to_be_focused()
    await page.reload()
    await expect(page.locator("#quota")).to_contain_text("$0.14")
    await expect(card).to_have_count(0)
    preview.assistant.percent = 96
    preview.assistant.tell(preview.assistant.quota())
    await expect(card).to_contain_text("More than 95 %")
    assert await page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


async def test_page_says_that_the_meter_is_away_until_it_answers(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=no-meter")
    card = page.locator(".card", has_text="What you use cannot be shown just now")
    await expect(card).to_be_visible()
    await expect(page.locator("#quota")).to_be_hidden()
    await tab.say("emoji")
    await tab.finished()
    preview.assistant.tell(preview.assistant.quota())
    await expect(card).to_have_count(0)
    await expect(page.locator("#quota")).to_contain_text("left")


async def test_list_is_asked_for_once_however_many_frames_come(tab: Tab, preview: Preview) -> None:
    asked: list[str] = []
    away = {"error": {"code": "unavailable", "message": "no", "details": {}, "request_id": "r"}}

    async def answer(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            await route.fulfill(status=503, json=away)
        else:
            await route.continue_()

    await tab.page.route("**/api/conversations?*", answer)
    page = await tab.go("/chat?scene=ready")
    await until(lambda: asked)
    for _ in range(10):
        preview.assistant.tell(frames.instance("ready", preview.assistant.generation))
    await expect(page.locator(".side-item", has_text="Packing list")).to_have_count(1)
    assert len(asked) == 2


async def test_title_is_shown_however_late_the_list_comes(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await tab.say("emoji")
    await tab.finished()
    await expect(page).to_have_title("emoji · Alcove")
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        asked.set()
        await may_answer.wait()
        await route.continue_()

    await page.route("**/api/conversations?*", late)
    await page.reload()
    await expect(page.locator("article.message.assistant .prose")).to_be_visible()
    await asyncio.wait_for(asked.wait(), 5)
    await expect(page).to_have_title("emoji · Alcove")  # its messages bring it, listed or not
    may_answer.set()
    await expect(page.locator("#title")).to_have_text("emoji")
    await expect(page).to_have_title("emoji · Alcove")


async def test_deleting_can_be_undone_and_renaming_stays(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    row = page.locator(".side-item", has_text="Packing list for Lofoten")
    await row.hover()
    await row.get_by_role("button", name="Delete").click()
    await expect(row).to_have_count(0)
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await expect(row).to_have_count(1)
    await row.get_by_role("link").click()
    await expect(page.locator("#title")).to_have_text("Packing list for Lofoten")
    await row.get_by_role("button", name="Delete").click()
    await expect(page.locator("#title")).to_have_text("New conversation")
    await page.locator(".toast").get_by_role("button", name="Undo").last.click()
    await expect(page.locator("#title")).to_have_text("Packing list for Lofoten")
    await row.hover()
    await row.get_by_role("button", name="Rename").click()
    await page.locator(".side-item input").fill("Lofoten in March")
    await page.locator(".side-item input").press("Enter")
    await until(
        lambda: any(
            c["title"] == "Lofoten in March" for c in preview.assistant.conversations.values()
        )
    )
    await expect(page.locator(".side-item", has_text="Lofoten in March")).to_have_count(1)


async def test_search_finds_by_text_and_escape_shows_all(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await expect(page.locator(".side-item")).to_have_count(7)
    await page.keyboard.press("Control+k")
    await page.keyboard.type("bokashi")
    await expect(page.locator(".side-item")).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(page.locator(".side-item")).to_have_count(7)


async def test_phone_has_no_sideways_scroll_and_its_list_is_a_dialog(
    tab: Tab, preview: Preview
) -> None:
    await tab.page.set_viewport_size({"width": 390, "height": 844})
    page = await tab.go("/chat?scene=ready")
    await page.locator("#open-side").click()
    await expect(page.get_by_role("dialog", name="Conversations")).to_be_visible()
    await page.locator(".drawer .side-item", has_text="What to do with kitchen scraps").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.locator(".code")).to_be_attached()
    assert await page.evaluate(
        "[document.documentElement.scrollWidth, document.querySelector('.room').offsetWidth]"
    ) == [390, 390]
    assert (
        await page.evaluate(
            "parseFloat(getComputedStyle(document.getElementById('composer-text')).fontSize)"
        )
        >= 16
    )


async def test_nothing_is_left_in_the_browser_s_storage(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=demo")
    await tab.say("emoji")
    await tab.finished()
    await page.get_by_role("button", name="Not now").click()
    await expect(page.locator(".card")).to_have_count(0)
    assert await page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    await page.reload()
    await expect(page.locator(".hello, article.message").first).to_be_visible()
    await expect(page.locator(".card")).to_have_count(0)


async def test_draft_outlives_a_reload_in_its_own_conversation_until_it_is_sent(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=ready")
    await expect(page.locator("#instance .words")).to_have_text("Awake")
    field = page.locator("#composer-text")
    await field.fill("emoji, half a thought")
    await page.reload()
    await expect(field).to_have_value("emoji, half a thought")
    await page.locator(".side-item", has_text="Packing list").get_by_role("link").click()
    await expect(field).to_have_value("")
    await page.go_back()
    await expect(field).to_have_value("emoji, half a thought")
    await field.press("Enter")
    await tab.finished()
    assert await page.evaluate("sessionStorage.length") == 0


async def test_draft_outlives_a_session_and_the_page_goes_on_with_the_next(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=ready")
    await expect(page.locator("#instance .words")).to_have_text("Awake")
    await page.locator("#composer-text").fill("half a thought")
    preview.assistant.tell({"type": "CUSTOM", "name": "signed_out", "reason": "session"})
    await expect(page.locator(".card.trouble")).to_contain_text("You are signed out")
    await until(lambda: not preview.assistant.listeners)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.locator(".card.trouble")).to_have_count(0)
    await until(lambda: preview.assistant.listeners)
    assert await page.locator("#composer-text").input_value() == "half a thought"


async def test_messages_of_a_conversation_are_fetched_again_after_a_failure(
    tab: Tab, preview: Preview
) -> None:
    cid = next(iter(preview.assistant.conversations))
    failures = iter((True, False))
    await tab.page.route(
        f"**/api/conversations/{cid}/messages*",
        lambda route: route.abort() if next(failures, False) else route.continue_(),
    )
    page = await tab.go(f"/chat/{cid}")
    await expect(page.locator("article.message")).to_have_count(6, timeout=10_000)


async def test_opened_conversation_is_shown_from_its_end(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await page.locator(".side-item", has_text="What to do with kitchen scraps").click()
    await expect(page.locator("article.message")).to_have_count(6)
    await expect(page.locator(".code .hljs-keyword").first).to_be_in_viewport()
    await expect(page.locator("#jump")).to_be_hidden()
    await page.evaluate("document.getElementById('reel').scrollTop = 0")
    await expect(page.locator("#jump")).to_be_visible()
    await page.locator("#jump").click()
    await expect(page.locator("#jump")).to_be_hidden()
