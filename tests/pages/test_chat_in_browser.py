"""The chat page in a real Chromium, in front of a scripted assistant that cuts, refuses and sleeps."""

import pytest
from playwright.async_api import expect

from tests.pages.conftest import Preview, Tab
from tests.pages.preview import words
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
ANSWER = "article.message.assistant .prose"


async def test_answer_streams_and_its_tool_stands_before_it(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await tab.say("Tell me about compost")
    await expect(page.locator("article.message.user .bubble")).to_have_text("Tell me about compost")
    await tab.finished()
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
    await tab.say("many")
    for _ in range(3):
        seen = len(preview.assistant.log)
        await until(lambda: preview.assistant.listeners and len(preview.assistant.log) > seen + 20)  # noqa: B023
        preview.assistant.cut()
    await tab.finished()
    assert await page.locator(ANSWER).inner_text() == words.MANY


async def test_reload_in_mid_answer_goes_on_where_it_was(tab: Tab, preview: Preview) -> None:
    preview.assistant.pace_s = 0.02
    page = await tab.go("/chat?scene=ready")
    await tab.say("Tell me about compost")
    await expect(page.locator(ANSWER)).to_contain_text("ten minutes a week")
    await page.reload()
    await expect(page.locator(ANSWER)).to_contain_text("ten minutes a week")
    preview.assistant.pace_s = 0.001
    await tab.finished()
    assert await page.locator("article.message").count() == 2
    text = await page.locator(ANSWER).inner_text()
    assert text.count("ten minutes a week") == 1
    assert text.count("What you need") == 1


async def test_stop_keeps_the_part_and_says_so(tab: Tab, preview: Preview) -> None:
    preview.assistant.pace_s = 0.03
    page = await tab.go("/chat?scene=ready")
    await tab.say("Tell me about compost")
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
    await tab.say("emoji please")
    await expect(page.locator(".toast")).to_contain_text("Your words are still in the field.")
    assert await page.locator("#composer-text").input_value() == "emoji please"
    await expect(page.locator("article.message")).to_have_count(0)
    preview.refuse(0, "", "")
    await page.locator("#composer-text").press("Enter")
    await tab.finished()
    await expect(page.locator("article.message.user")).to_have_count(1)


async def test_hostile_markdown_is_inert_text(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await tab.say("hostile")
    await tab.finished()
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


async def test_numbers_stand_to_the_right_lists_go_on_and_tasks_have_boxes(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/chat?scene=ready")
    await tab.say("layout")
    await tab.finished()
    prose = page.locator(ANSWER)
    await expect(prose.locator("td", has_text="1,204.00")).to_have_css("text-align", "end")
    await expect(prose.locator("th", has_text="Who")).to_have_css("text-align", "center")
    await expect(prose.locator("ol")).to_have_attribute("start", "3")
    for label, done in (("Done", True), ("Not done", False)):
        box = prose.get_by_role("checkbox", name=label, exact=True)
        await expect(box).to_be_checked(checked=done)
        await expect(box).to_be_disabled()


async def test_two_prices_in_a_sentence_stay_prices(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await tab.say("table")
    await tab.finished()
    prose = page.locator(ANSWER)
    await expect(prose).to_contain_text("It costs $5 or $7 a year in cardboard")
    assert await prose.locator("math, .katex, [class*=math]").count() == 0


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
    await tab.say("a long one")
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
    await tab.finished()
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
    await tab.say("Tell me about compost")
    await tab.finished()
    await expect(page.locator("#status")).to_contain_text("The answer is finished")
    assert await page.evaluate("heard") == [
        "Your assistant is answering.",
        "The answer is finished, 6 paragraphs.",
    ]
    assert await page.locator("#log").get_attribute("aria-live") == "off"


async def test_settled_words_are_never_drawn_again(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/chat?scene=ready")
    await tab.say("Tell me about compost")
    await expect(page.locator(f"{ANSWER} .block")).not_to_have_count(0)
    await until(lambda: len(preview.assistant.log) > 60)
    await page.evaluate(
        "window.first = document.querySelector('article.assistant .prose .block')?.firstChild"
    )
    await tab.finished()
    assert await page.evaluate(
        "first !== null && first === document.querySelector('article.assistant .prose .block').firstChild"
    )


async def test_code_is_coloured_once_it_is_whole_and_copies_exactly(
    tab: Tab, preview: Preview
) -> None:
    await tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await tab.go("/chat?scene=ready")
    await tab.say("code")
    await tab.finished()
    await expect(page.locator(".code .hljs-keyword").first).to_be_visible()
    await page.locator(".code-head button").click()
    await expect(page.locator(".code-head button")).to_contain_text("Copied")
    code = words.CODE.split("```python\n")[1].split("\n```")[0]
    assert await page.evaluate("navigator.clipboard.readText()") == code
