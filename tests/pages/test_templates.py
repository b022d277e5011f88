"""Every page with sample data: it renders, and nothing in it needs an unsafe CSP."""

import re

import pytest
from jinja2 import Environment

from gateway.pages.environment import DIST, TEMPLATES, environment
from tests.pages.preview import samples
from tests.pages.preview.pages import PAGES

COMMON = {
    "theme": "dark",
    "csrf": "token-of-the-session",
    "account": samples.PERSON,
    "path": "/usage",
    "notice": None,
    "error": None,
}
HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def templates(built: None) -> Environment:
    """The pages' environment."""
    return environment(DIST)


@pytest.mark.parametrize("address", PAGES)
def test_page_renders_without_inline_script_or_style(templates: Environment, address: str) -> None:
    template, context = PAGES[address]
    html = templates.get_template(template).render(**COMMON | {"path": address} | context)
    assert '<html lang="en" data-theme="dark">' in html
    assert not re.search(r"<[^>]*\sstyle=", html)
    assert not re.search(r"<[^>]*\son[a-z]+=", html)
    assert "<style" not in html.replace("<style>\n    g", "")
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", html)
    assert html.count("<h1") == 1


@pytest.mark.parametrize("address", PAGES)
def test_every_form_that_posts_carries_the_token(templates: Environment, address: str) -> None:
    template, context = PAGES[address]
    html = templates.get_template(template).render(**COMMON | context)
    forms = re.findall(r'<form[^>]*method="post".*?</form>', html, re.DOTALL)
    assert all('name="x-csrf-token" value="token-of-the-session"' in form for form in forms)


@pytest.mark.parametrize("address", PAGES)
def test_every_field_has_a_name_that_is_read_aloud(templates: Environment, address: str) -> None:
    template, context = PAGES[address]
    html = templates.get_template(template).render(**COMMON | context)
    labels = set(re.findall(r'<label[^>]*\bfor="([^"]+)"', html))
    for field in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
        if re.search(r'type="(hidden|radio|checkbox)"', field) or 'aria-hidden="true"' in field:
            continue
        found = re.search(r'\bid="([^"]+)"', field)
        assert "aria-label=" in field or (found and found.group(1) in labels), field


def test_what_people_type_is_shown_as_text(templates: Environment) -> None:
    _, context = PAGES["/admin/tenants"]
    row = samples.tenants(1)[0] | {"email": HOSTILE}
    html = templates.get_template("admin/_tenants.html").render(
        **COMMON | context | {"rows": [row]}
    )
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    boot = {
        "conversation_id": None,
        "csrf": "x",
        "email": HOSTILE,
        "is_admin": False,
        "demo_model": False,
        "plan": "Free",
    }
    html = templates.get_template("chat.html").render(**COMMON | {"boot": boot})
    assert "<script>alert" not in html


def test_chart_and_its_table_say_the_same(templates: Environment) -> None:
    chart = {
        "series": ["m"],
        "days": [
            {
                "day": "2026-11-01",
                "label": "1 Nov",
                "values": {"m": 1_500_000_000},
                "total_nanos": 1_500_000_000,
            },
            {"day": "2026-11-02", "label": "2 Nov", "values": {}, "total_nanos": 0},
        ],
    }
    source = '{% from "_charts.html" import stacked_days with context %}{{ stacked_days(chart, "Q?", "UTC") }}'
    html = templates.from_string(source).render(chart=chart)
    assert html.count("$1.50") == 4  # the bar's words, its series, and two cells of the table
    (height,) = re.findall(r'class="series-1"[^>]*height="([\d.]+)%"', html)
    assert float(height) == pytest.approx(75)  # of an axis that ends at $2
    (width,) = re.findall(r'class="series-1"[^>]* width="([\d.]+)%"', html)
    assert float(width) < 100 / 7  # two days are two bars, not two walls


def test_every_template_is_previewed() -> None:
    shown = {template for template, _ in PAGES.values()} | {"chat.html"}
    frames = {"base.html", "site.html", "door.html", "account_frame.html", "admin/admin.html"}
    pages = {
        str(path.relative_to(TEMPLATES))
        for path in TEMPLATES.rglob("*.html")
        if not path.name.startswith("_")
    }
    assert pages - frames == shown


def test_demonstration_is_said_to_be_one_until_something_else_can_answer(
    templates: Environment,
) -> None:
    page = templates.get_template("admin/providers.html")
    alone, beside = (
        page.render(**COMMON | PAGES[address][1])
        for address in ("/admin/providers/none", "/admin/providers")
    )
    assert "Only the demonstration model answers" in alone
    assert "Only the demonstration model answers" not in beside
    unknown = page.render(
        **COMMON | PAGES["/admin/providers"][1] | {"providers": [], "problems": ["Away."]}
    )
    assert "<h2>" not in unknown


def test_what_was_found_on_the_machine_is_not_offered_for_change(templates: Environment) -> None:
    page = templates.get_template("admin/providers.html")
    html = page.render(**COMMON | PAGES["/admin/providers"][1])
    for local in (samples.DEMO["id"], samples.EMBEDDINGS["id"]):
        assert f'action="/admin/providers/{local}/probes"' in html
        assert f'action="/admin/providers/{local}/default"' not in html
        assert f'href="/admin/providers/{local}"' not in html
    assert 'action="/admin/providers/p2/default"' in html
    assert "Speaks like OpenAI at" in html


def test_error_page_leads_to_the_start_once(templates: Environment) -> None:
    page = templates.get_template("error.html")
    context = COMMON | PAGES["/error/404"][1]
    start = {"href": "/", "label": "Go to the start"}
    for action, links in ((None, 1), (start, 1), ({"href": "/chat", "label": "Back"}, 2)):
        assert page.render(**context | {"action": action}).count('<a class="button') == links
