"""Every answer carries the headers that keep a browser safe, whoever made it."""

from pathlib import Path

from tests.gateway.browser import HOST
from tests.gateway.conftest import Gateway, Serve, settings_for

PATHS = [
    ("GET", "/"),
    ("GET", "/sign-in"),
    ("GET", "/chat"),
    ("GET", "/nowhere"),
    ("GET", "/api/session"),
    ("GET", "/api/nowhere"),
    ("POST", "/sign-in"),
    ("GET", "/static/none.js"),
    ("GET", "/%ff"),
    ("GET", "/livez"),
    ("PUT", "/chat"),
]


async def test_security_headers_are_there(gateway: Gateway) -> None:
    for method, path in PATHS:
        answer = await gateway.browser().send(method, path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert answer.headers["referrer-policy"] == "same-origin", path
        assert answer.headers["cache-control"] == "no-store", path
        assert "strict-transport-security" not in answer.headers, path
        assert "x-request-id" in answer.headers, path


async def test_error_has_headers_and_tells_nothing_when_something_breaks(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    secret = "a detail that must stay inside"

    async def broken() -> None:
        raise RuntimeError(secret)

    gateway.app.add_api_route("/breaks", broken)
    for accept, kind in (("text/html", "text/html"), ("*/*", "application/json")):
        answer = await ada.send("GET", "/breaks", headers={"accept": accept})
        assert answer.status == 500
        assert answer.headers["content-type"].startswith(kind)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert secret not in answer.text


async def test_chat_asks_for_trusted_types_and_other_pages_do_not(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    chat = (await ada.visit("/chat")).headers["content-security-policy"]
    usage = (await ada.visit("/usage")).headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in chat
    assert "trusted-types" not in usage


async def test_assets_are_kept_for_good_when_served(gateway: Gateway) -> None:
    page = await gateway.browser().visit("/sign-in")
    asset = page.text.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = await gateway.browser().send("GET", asset)
    assert answer.status == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/css")
    assert (await gateway.browser().send("GET", "/static/manifest.json")).status == 404


async def test_cookies_are_bound_to_the_host_when_people_come_by_https(
    serve: Serve, tmp_path: Path
) -> None:
    secure = await serve(settings=settings_for(tmp_path, public_url=f"https://{HOST}"))
    answer = await secure.browser().visit("/sign-in")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-alcove-anon=")
    for part in ("Secure", "HttpOnly", "SameSite=lax", "Path=/"):
        assert part in cookie
    assert "Domain" not in cookie
    assert answer.headers["strict-transport-security"].startswith("max-age=31536000")
