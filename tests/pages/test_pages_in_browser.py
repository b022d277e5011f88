"""The other pages in a real Chromium: no sideways scroll, no CSP report, htmx and dialogs at work."""

import re

import pytest
from playwright.async_api import expect

from tests.pages.conftest import Preview, Tab
from tests.pages.preview.pages import PAGES
from tests.pages.preview.samples_audit import LONG_ADDRESS

AXE_RUN = """async () => {
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
    const {violations} = await axe.run({runOnly: {type: 'tag', values: tags}});
    return violations.flatMap(v => v.nodes.map(n => [v.id, n.target.join(' '), n.failureSummary]));
}"""
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def test_every_page_fits_a_phone_a_tablet_and_a_desk_in_both_themes(tab: Tab) -> None:
    wide = []
    for width, theme in ((390, "dark"), (820, "light"), (1440, "dark"), (320, "light")):
        await tab.page.set_viewport_size({"width": width, "height": 900})
        await tab.page.emulate_media(color_scheme=theme)
        for address in PAGES:
            page = await tab.go(address)
            found = await page.evaluate("document.documentElement.scrollWidth")
            if found > width:
                wide.append((address, width, found))
    assert wide == []


async def test_refused_key_is_back_in_its_dialog_with_the_wrong_field_focused(tab: Tab) -> None:
    page = await tab.go("/account/keys/refused")
    field = page.locator("#key-openai")
    await expect(field).to_be_focused()
    problem = page.locator("#key-openai-problem")
    await expect(problem).to_contain_text("The test failed")
    colour = await problem.evaluate("e => getComputedStyle(e).color")
    await expect(field).to_have_css("border-top-color", colour)


async def test_tenants_are_searched_sorted_and_paged_in_place(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/admin/tenants")
    await page.get_by_label("Search by e-mail").fill("jonas")
    await expect(page.locator("#tenants tbody tr")).to_have_count(1)
    await page.wait_for_url(re.compile("q=jonas"))
    await page.get_by_role("columnheader", name="Plan").get_by_role("link").click()
    await expect(page.locator("#tenants th[aria-sort=ascending]")).to_contain_text("Plan")
    await expect(page.locator("#tenants tbody tr")).to_have_count(1)
    await page.get_by_label("Search by e-mail").fill("li.wei")
    await expect(page.locator("#tenants tbody td").first).to_have_text("li.wei@example.org")
    await expect(page.locator("#tenants th[aria-sort=ascending]")).to_contain_text("Plan")
    assert await page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


async def test_provider_is_tested_in_place(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/admin/providers")
    await expect(page.locator("#probe-p2")).to_contain_text("Does not work")
    await page.locator("li", has_text="Workshop server").get_by_role("button", name="Test").click()
    await expect(page.locator("#probe-p2")).to_contain_text("Works")
    await expect(page.locator("#probe-p2")).to_contain_text("just now")


async def test_provider_form_asks_for_models_only_where_prices_are_not_known(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/admin/providers/new")
    await expect(page.get_by_label("Address", exact=True)).to_be_hidden()
    await page.get_by_text("Another address").click()
    await expect(page.get_by_label("Address", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Add a model").click()
    await expect(page.locator("[data-model-row]")).to_have_count(2)
    ids = await page.locator("input").evaluate_all("all => all.map(i => i.id).filter(Boolean)")
    assert len(ids) == len(set(ids))


async def test_provider_name_follows_the_choice_until_one_is_typed(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/admin/providers/new")
    name, kinds = page.get_by_label("Name", exact=True), page.locator(".kind-choice")
    await name.fill("OpenAI")
    for kind, suggested in (
        ("Anthropic", "Anthropic"),
        ("Another address", ""),
        ("OpenAI", "OpenAI"),
    ):
        await kinds.get_by_text(kind, exact=True).click()
        await expect(name).to_have_value(suggested)
    await name.fill("Ours")
    await kinds.get_by_text("Anthropic", exact=True).click()
    await expect(name).to_have_value("Ours")


async def test_suspending_asks_for_a_reason_first(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/admin/tenants/taaaaaaaaaaaaaaa")
    await page.get_by_role("button", name="Suspend").click()
    dialog = page.get_by_role("dialog", name="Suspend mara.lindqvist@example.org?")
    await expect(dialog).to_be_visible()
    assert await dialog.get_by_label("Reason").get_attribute("required") is not None
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_be_hidden()


async def test_refused_change_opens_its_dialog_with_what_was_typed(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/admin/tenants/refused")
    dialog = page.get_by_role("dialog", name="Change the quota")
    await expect(dialog).to_contain_text("An amount cannot be below zero.")
    await expect(dialog.get_by_label("US dollars a month")).to_have_value("-3")


async def test_key_is_copied_with_one_press_or_selected_where_that_is_forbidden(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/account/keys/fresh")
    key = await page.get_by_label("Key", exact=True).first.input_value()
    button = page.locator("[data-copy]")
    await page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject() }")
    await button.click()
    await expect(button).to_have_text("Press Ctrl+C")
    selected = await page.evaluate(
        "(f => f.value.slice(f.selectionStart, f.selectionEnd))(document.activeElement)"
    )
    assert selected == key
    await tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.reload()
    await button.click()
    await expect(button).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == key


async def test_own_key_is_asked_for_in_a_dialog_that_a_refusal_opens_again(
    tab: Tab, preview: Preview
) -> None:
    page = await tab.go("/account/keys")
    await page.locator("[data-open=own-openai]").click()
    dialog = page.get_by_role("dialog", name="Your key to OpenAI")
    await expect(dialog.get_by_label("Key", exact=True)).to_have_attribute("type", "password")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    page = await tab.go("/account/keys/refused")
    await expect(dialog).to_contain_text("The test failed")
    await expect(dialog.get_by_label("Key", exact=True)).to_have_value("")


async def test_theme_is_kept_in_a_cookie_that_the_server_reads(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/usage")
    await page.get_by_role("button", name="Your menu").click()
    await page.get_by_role("button", name="Dark").click()
    assert (
        await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(25, 23, 20)"
    )
    await page.reload()
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


async def test_times_are_told_in_the_reader_s_zone(tab: Tab, preview: Preview) -> None:
    page = await tab.go("/account")
    await expect(page.locator("time.when").first).to_contain_text("CE")


async def test_calls_are_told_to_the_second_in_the_reader_s_zone(
    tab: Tab, preview: Preview
) -> None:
    for address, others in (("/admin/requests", 0), ("/admin/requests/one", 1)):
        page = await tab.go(address)
        told = page.locator("main time.exact").first
        await expect(told).to_have_text(re.compile(r"\d{2}:\d{2}:\d{2} CES?T$"))
        seconds = (await told.get_attribute("datetime") or "")[-3:-1]
        assert f":{seconds} CE" in await told.inner_text()
        await expect(page.locator("main time:not(.exact)")).to_have_count(others)  # the price's


async def test_places_fade_only_where_there_are_more_of_them(tab: Tab) -> None:
    faded = re.compile(r"\bmore-")
    await tab.page.set_viewport_size({"width": 390, "height": 844})
    for address, before, after in (
        ("/admin/tenants", False, True),
        ("/admin/host", True, False),
    ):
        strip = (await tab.go(address)).locator(".sub-nav")
        classes = re.compile("more-before"), re.compile("more-after")
        for there, pattern in zip((before, after), classes, strict=True):
            check = expect(strip).to_have_class if there else expect(strip).not_to_have_class
            await check(pattern)
    await strip.evaluate("strip => strip.scrollTo(0, 0)")
    await expect(strip).to_have_class(re.compile("more-after"))
    await tab.page.set_viewport_size({"width": 1440, "height": 900})
    await expect(strip).not_to_have_class(faded)


async def test_a_table_still_fades_when_it_was_sorted_in_place(tab: Tab) -> None:
    await tab.page.set_viewport_size({"width": 800, "height": 844})
    page = await tab.go("/admin/tenants")
    fades = re.compile("more-after")
    await expect(page.locator("#tenants .table-wrap")).to_have_class(fades)
    await page.locator("#tenants th a").first.click()
    await expect(page.locator("#tenants th[aria-sort]").first).to_be_visible()
    await page.wait_for_url(re.compile("sort=email"))
    await expect(page.locator("#tenants .table-wrap")).to_have_class(fades)


async def test_current_place_is_in_sight_on_a_phone(tab: Tab) -> None:
    await tab.page.set_viewport_size({"width": 390, "height": 844})
    for place in ("tenants", "providers", "prices", "host"):
        page = await tab.go(f"/admin/{place}")
        box = await page.locator(".sub-nav [aria-current]").bounding_box()
        assert box is not None
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, place


async def test_no_bar_of_a_chart_covers_an_amount(tab: Tab) -> None:
    for width in (390, 1280):
        await tab.page.set_viewport_size({"width": width, "height": 900})
        for place in ("/usage", "/admin/spend"):
            page = await tab.go(place)
            edges = "all => all.map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
            amounts = await page.locator(".chart-plot text[text-anchor=end]").evaluate_all(edges)
            bars = await page.locator(".chart-plot rect[class^=series]").evaluate_all(edges)
            assert len(amounts) == 2 and bars
            assert max(right for _, right in amounts) < min(left for left, _ in bars)
            assert min(left for left, _ in amounts) >= 0


async def test_moments_stand_on_one_line_beside_an_address_that_is_cut(tab: Tab) -> None:
    await tab.page.set_viewport_size({"width": 1280, "height": 800})
    for place in ("audit", "requests"):
        page = await tab.go(f"/admin/{place}")
        lines = await page.locator("tbody time").evaluate_all(
            "all => all.map(e => e.getClientRects().length)"
        )
        assert lines and set(lines) == {1}, place
        box = page.locator(".table-wrap")
        assert await box.evaluate("e => e.scrollWidth <= e.clientWidth"), place
    page = await tab.go("/admin/audit")
    actor = page.locator(f"td.address[title='{LONG_ADDRESS}']")
    assert await actor.evaluate("e => e.scrollWidth > e.clientWidth")


async def test_a_call_takes_four_lines_on_a_phone_and_a_troubled_one_its_marks_besides(
    tab: Tab,
) -> None:
    await tab.page.set_viewport_size({"width": 390, "height": 844})
    page = await tab.go("/admin/requests")
    measure = "all => all.map(row => row.offsetHeight)"
    heights = await page.locator("tbody tr:not(:has(.badge))").evaluate_all(measure)
    assert heights and max(heights) <= 124
    troubled = await page.locator("tbody tr:has(.badge)").evaluate_all(measure)
    assert troubled and max(troubled) <= 168
    first = page.locator("tbody tr").first
    await expect(first.locator(".end")).to_be_visible()
    when, charge = (
        await first.locator(".name").bounding_box(),
        await first.locator(".end").bounding_box(),
    )
    assert when and charge and abs(when["y"] - charge["y"]) < 4


async def test_pages_meet_wcag_2_2_aa_in_both_themes(tab: Tab, axe: str) -> None:
    found = []
    for theme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for address in (*PAGES, "/chat?scene=demo", "/chat?scene=limit"):
            page = await tab.go(address)
            await page.evaluate(axe)
            problems = await page.evaluate(AXE_RUN)
            found += [(theme, address, *problem) for problem in problems]
    assert found == []
