"""Writes come from our own pages with their token; reads of the API never from another site's page."""

import re

from tests.gateway.browser import HOST, ORIGIN
from tests.gateway.conftest import Gateway, Serve, settings_for
from tests.gateway.routes import walk

SAME, CROSS, SIBLING, TYPED = "same-origin", "cross-site", "same-site", "none"

# Sec-Fetch-Site, Origin, token → may it write?
MATRIX = [
    (SAME, ORIGIN, "right", True),
    (SAME, None, "right", True),
    (None, ORIGIN, "right", True),
    (None, None, "right", False),
    (SAME, ORIGIN, "none", False),
    (SAME, ORIGIN, "wrong", False),
    (SAME, ORIGIN, "stranger's", False),
    (SAME, "http://evil.example", "right", False),
    (SAME, "null", "right", False),
    (SAME, f"https://{HOST}", "right", False),
    (SAME, f"{ORIGIN}:8080", "right", False),
    (SAME, f"{ORIGIN}.evil.example", "right", False),
    (CROSS, ORIGIN, "right", False),
    (CROSS, "http://evil.example", "right", False),
    (SIBLING, ORIGIN, "right", False),
    (TYPED, ORIGIN, "right", False),
    (None, "http://evil.example", "right", False),
    (None, "null", "right", False),
]


async def test_write_passes_only_when_our_page_made_it(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    eve = await gateway.person("eve@example.org")
    tokens = {"right": ada.csrf, "wrong": "0" * 64, "stranger's": eve.csrf}
    for site, origin, token, may in MATRIX:
        headers = {"accept": "application/json"}
        if site:
            headers["sec-fetch-site"] = site
        if origin:
            headers["origin"] = origin
        if token in tokens:
            headers["x-csrf-token"] = tokens[token]
        answer = await ada.send("POST", "/api/wake", headers=headers, json={"reason": "person"})
        assert answer.status == (200 if may else 403), (site, origin, token)


async def test_form_passes_only_with_its_token(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    right, ada.csrf = ada.csrf, "0" * 64
    assert (await ada.submit("/account/sessions/revocations")).status == 403
    ada.csrf = right
    assert (await ada.submit("/account/sessions/revocations")).status == 303


async def test_sign_in_form_is_tied_to_the_browser_that_loaded_it(gateway: Gateway) -> None:
    await gateway.person("ada@example.org")
    mallory, victim = gateway.browser(), gateway.browser()
    await mallory.visit("/sign-in")
    await victim.visit("/sign-in")
    victim.csrf = mallory.csrf
    answer = await victim.submit("/sign-in", email="ada@example.org", password="x")
    assert answer.status == 403


async def test_api_read_is_refused_when_another_site_makes_it(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    for site in (CROSS, SIBLING):
        answer = await ada.send("GET", "/api/session", headers={"sec-fetch-site": site})
        assert answer.status == 403


async def test_link_from_another_site_opens_a_page(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    headers = {"sec-fetch-site": CROSS, "sec-fetch-mode": "navigate", "accept": "text/html"}
    assert (await ada.send("GET", "/usage", headers=headers)).status == 200


async def test_event_source_needs_no_origin(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    async with ada.stream() as stream:
        assert stream.response.status == 200


async def test_loopback_names_are_one_place_in_development(serve: Serve, tmp_path: object) -> None:
    local = settings_for(tmp_path, public_url="http://127.0.0.1:8000")  # type: ignore[arg-type]
    assert local.origins == {
        "http://127.0.0.1:8000",
        "http://localhost:8000",
        "http://[::1]:8000",
    }
    public = settings_for(tmp_path, public_url="https://alcove.example")  # type: ignore[arg-type]
    assert public.hosts == {"alcove.example"}


async def test_every_write_route_refuses_without_a_token(gateway: Gateway) -> None:
    """Walks the app, so that a route that forgets the check is found."""
    admin = await gateway.admin()
    writes = [(m, p) for m, p in walk(gateway.app) if m != "GET"]
    assert len(writes) > 25
    for method, path in writes:
        named = re.sub(r"\{(\w+)(:path)?\}", "abcdefghijklmnop", path)
        headers = {"origin": ORIGIN, "sec-fetch-site": SAME}
        answer = await admin.send(method, named, headers=headers)
        assert (answer.status, answer.reason) == (403, "csrf"), (method, path, answer.text)
