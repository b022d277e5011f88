"""The chat page in a real Chromium, in front of a scripted assistant that cuts, refuses and sleeps."""

import pytest
from playwright.async_api import Page, expect

from tests.pages.conftest import Preview, Tab
from tests.pages.preview import words
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
ANSWER = "article.message.assistant .prose"


async def say(page: Page, text: str) -> None:
    """Types and presses Enter."""
    await page.locator("#composer-text").fill(text)
    await page.locator("#composer-text").press("Enter")


async def finished(page: Page) -> None:
    """The last answer has ended."""
    await expect(page.locator("article.message.assistant").last.locator(".meta")).to_be_attached(
        timeout=15_000
    )


async def test_answer_streams_and_its_tool_stands_before_it(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await say(page, "Tell me about compost")
    await expect(page.locator("article.message.user .bubble")).to_have_text("Tell me about compost")
    await finished(page)
    await expect(page.locator(".tool.done")).to_contain_text("Searched its memory for")
    await expect(page.locator(ANSWER)).to_contain_text(
        "Shall I put a reminder in your notes for Saturday?"
    )
    await expect(page.locator("#title")).to_have_text("Tell me about compost")
    assert await page.locator("#composer-text").input_value() == ""
    assert await page.evaluate("document.activeElement.id") == "composer-text"


async def test_nothing_is_lost_or_doubled_when_streams_are_cut_again_and_again(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=ready")
    preview.assistant.pace_s = 0.012
    await say(page, "many")
    for _ in range(3):
        seen = len(preview.assistant.log)
        await until(lambda: preview.assistant.listeners and len(preview.assistant.log) > seen + 20)  # noqa: B023
        preview.assistant.cut()
    await finished(page)
    assert await page.locator(ANSWER).inner_text() == words.MANY


async def test_reload_in_mid_answer_goes_on_where_it_was(tab: Tab, preview: Preview) -> None:
    preview.assistant.pace_s = 0.02
    page = await tab.go("/chat?scene=ready")
    await say(page, "Tell me about compost")
    await expect(page.locator(ANSWER)).to_contain_text("ten minutes a week")
    await page.reload()
    await expect(page.locator(ANSWER)).to_contain_text("ten minutes a week")
    preview.assistant.pace_s = 0.001
    await finished(page)
    assert await page.locator("article.message").count() == 2
    text = await page.locator(ANSWER).inner_text()
    assert text.count("ten minutes a week") == 1
    assert text.count("What you need") == 1


async def test_stop_keeps_the_part_and_says_so(tab: Tab, preview: Preview) -> None:
    preview.assistant.pace_s = 0.03
    page = await tab.go("/chat?scene=ready")
    await say(page, "Tell me about compost")
    await expect(page.locator(ANSWER)).to_contain_text("ten minutes")
    await page.keyboard.press("Escape")
    await expect(page.locator(".ending")).to_contain_text("You stopped this answer.")
    await expect(page.locator(ANSWER)).to_contain_text("ten minutes")
    await expect(page.locator("#stop")).to_be_hidden()


async def test_refused_message_stays_in_the_field_and_the_next_try_sends_it_once(
    tab: Tab, preview: Preview
) -> None:
    preview.refuse(503, "unavailable", "Not now.")
    page = await tab.go("/chat?scene=ready")
    await say(page, "emoji please")
    await expect(page.locator(".toast")).to_contain_text("Your words are still in the field.")
    assert await page.locator("#composer-text").input_value() == "emoji please"
    await expect(page.locator("article.message")).to_have_count(0)
    preview.refuse(0, "", "")
    await page.locator("#composer-text").press("Enter")
    await finished(page)
    await expect(page.locator("article.message.user")).to_have_count(1)


async def test_message_typed_while_waking_is_kept_and_answered(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=asleep")
    await expect(page.locator(".wake-card")).to_contain_text("Your assistant is waking up")
    await say(page, "emoji")
    await expect(page.locator("article.message.user.waiting")).to_contain_text(
        "Waiting until your assistant is awake"
    )
    await finished(page)
    await expect(page.locator(".wake-card")).to_have_count(0)
    await expect(page.locator("article.message.user.complete")).to_have_count(1)


async def test_failed_wake_offers_another_try_and_discarding(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=stuck")
    await say(page, "Are you there?")
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


async def test_hostile_markdown_is_inert_text(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await say(page, "hostile")
    await finished(page)
    prose = page.locator(ANSWER)
    assert await page.evaluate("window.hacked") is None
    for tag in (
        "script",
        "img",
        "iframe",
        "style",
        "form",
        "svg:not(.icon)",
        "math",
        "base",
        "[style]",
        "[onclick]",
        "[onmouseover]",
        "[onerror]",
    ):
        assert await prose.locator(tag).count() == 0, tag
    links = await prose.locator("a").evaluate_all("all => all.map(a => [a.href, a.rel, a.target])")
    assert links == [["https://ok.example.com/page", "noopener noreferrer nofollow", "_blank"]]
    await expect(prose).to_contain_text("<script>window.hacked = 1</script>")
    await expect(prose.locator(".blocked-image").first).to_contain_text(
        "Picture not loaded: a picture"
    )


async def test_enter_of_a_composition_does_not_send(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await page.locator("#composer-text").focus()
    devtools = await tab.context.new_cdp_session(page)
    await devtools.send(
        "Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3}
    )
    await devtools.send(
        "Input.dispatchKeyEvent",
        {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229},
    )
    await devtools.send("Input.insertText", {"text": "日本"})
    assert preview.assistant.accepted == {}
    await page.keyboard.press("Enter")
    await expect(page.locator("article.message.user .bubble")).to_have_text("日本")
    assert len(preview.assistant.accepted) == 1


async def test_reader_who_scrolls_up_is_left_alone_and_can_jump_back(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=ready")
    await say(page, "a long one")
    await until(lambda: len(preview.assistant.log) > 300)
    await page.locator("#reel").hover()
    await page.mouse.wheel(0, -400)
    await expect(page.locator("#jump")).to_be_visible()
    before = await page.evaluate("document.getElementById('reel').scrollTop")
    seen = len(preview.assistant.log)
    await until(lambda: len(preview.assistant.log) > seen + 200)
    assert await page.evaluate("document.getElementById('reel').scrollTop") == before
    await page.locator("#jump").click()
    await expect(page.locator("#jump")).to_be_hidden()
    await finished(page)
    assert (
        await page.evaluate(
            "(r => r.scrollHeight - r.scrollTop - r.clientHeight)(document.getElementById('reel'))"
        )
        < 3
    )


async def test_screen_reader_hears_the_beginning_and_the_end_only(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=ready")
    await expect(page.locator("#instance .words")).to_have_text("Awake")
    await page.evaluate(
        """() => {
            const node = document.getElementById('status');
            window.heard = [];
            const listen = new MutationObserver(() => node.textContent && heard.push(node.textContent));
            listen.observe(node, {childList: true, characterData: true, subtree: true});
        }"""
    )
    await say(page, "Tell me about compost")
    await finished(page)
    await expect(page.locator("#status")).to_contain_text("The answer is finished")
    assert await page.evaluate("heard") == [
        "Your assistant is answering.",
        "The answer is finished, 6 paragraphs.",
    ]
    assert await page.locator("#log").get_attribute("aria-live") == "off"


async def test_settled_words_are_never_drawn_again(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await say(page, "Tell me about compost")
    await expect(page.locator(f"{ANSWER} .block")).not_to_have_count(0)
    await until(lambda: len(preview.assistant.log) > 60)
    await page.evaluate(
        "window.first = document.querySelector('article.assistant .prose .block')?.firstChild"
    )
    await finished(page)
    assert await page.evaluate(
        "first !== null && first === document.querySelector('article.assistant .prose .block').firstChild"
    )


async def test_code_is_coloured_once_it_is_whole_and_copies_exactly(
    tab: Tab, preview: Preview
) -> None:
    await tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await tab.go("/chat?scene=ready")
    await say(page, "code")
    await finished(page)
    await expect(page.locator(".code .hljs-keyword").first).to_be_visible()
    await page.locator(".code-head button").click()
    await expect(page.locator(".code-head button")).to_contain_text("Copied")
    code = words.CODE.split("```python\n")[1].split("\n```")[0]
    assert await page.evaluate("navigator.clipboard.readText()") == code


async def test_deleting_can_be_undone_and_renaming_stays(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    row = page.locator(".side-item", has_text="Packing list for Lofoten")
    await row.hover()
    await row.get_by_role("button", name="Delete").click()
    await expect(row).to_have_count(0)
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await expect(row).to_have_count(1)
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
    await say(page, "emoji")
    await finished(page)
    await page.get_by_role("button", name="Not now").click()
    await expect(page.locator(".card")).to_have_count(0)
    assert await page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    await page.reload()
    await expect(page.locator(".hello, article.message").first).to_be_visible()
    await expect(page.locator(".card")).to_have_count(0)


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
