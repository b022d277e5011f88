"""What a request may look like at all: 400 for the rest, never 500, never a route."""

import pytest

from gateway.web.guard import check_target
from infra.kit.errors import AlcoveError
from tests.gateway.browser import HOST
from tests.gateway.conftest import Gateway
from tests.gateway.raw import exchange

_OK = f"Host: {HOST}\r\n"

REFUSED = {
    "no host": "GET /sign-in HTTP/1.1\r\n\r\n",
    "two hosts": f"GET /sign-in HTTP/1.1\r\n{_OK}{_OK}\r\n",
    "two different hosts": f"GET /sign-in HTTP/1.1\r\n{_OK}Host: evil.example\r\n\r\n",
    "foreign host": "GET /sign-in HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "host with another port": f"GET /sign-in HTTP/1.1\r\nHost: {HOST}:81\r\n\r\n",
    "host with user": f"GET /sign-in HTTP/1.1\r\nHost: x@{HOST}\r\n\r\n",
    "http/1.0 without host": "GET /sign-in HTTP/1.0\r\n\r\n",
    "101 headers": f"GET /sign-in HTTP/1.1\r\n{_OK}" + "X-A: b\r\n" * 100 + "\r\n",
    "33 KiB of headers": f"GET /sign-in HTTP/1.1\r\n{_OK}X-A: {'b' * 33 * 1024}\r\n\r\n",
    "length and chunked": f"POST /sign-in HTTP/1.1\r\n{_OK}Content-Length: 3\r\n"
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "odd transfer encoding": f"POST /sign-in HTTP/1.1\r\n{_OK}Transfer-Encoding: xchunked\r\n\r\n",
    "two lengths": f"POST /sign-in HTTP/1.1\r\n{_OK}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "signed length": f"POST /sign-in HTTP/1.1\r\n{_OK}Content-Length: +4\r\n\r\nabcd",
    "bare line feeds": f"GET /sign-in HTTP/1.1\nHost: {HOST}\n\n",
    "folded header": f"GET /sign-in HTTP/1.1\r\n{_OK}X-A: b\r\n c\r\n\r\n",
    "nul in a header": f"GET /sign-in HTTP/1.1\r\n{_OK}X-A: b\0c\r\n\r\n",
    "bad escape": f"GET /%zz HTTP/1.1\r\n{_OK}\r\n",
    "half an escape": f"GET /%a HTTP/1.1\r\n{_OK}\r\n",
    "not utf-8": f"GET /%ff HTTP/1.1\r\n{_OK}\r\n",
    "overlong slash": f"GET /%c0%af HTTP/1.1\r\n{_OK}\r\n",
    "dot dot": f"GET /chat/../admin HTTP/1.1\r\n{_OK}\r\n",
    "encoded dot dot": f"GET /chat/%2e%2e/admin HTTP/1.1\r\n{_OK}\r\n",
    "encoded slash": f"GET /chat%2fx HTTP/1.1\r\n{_OK}\r\n",
    "backslash": f"GET /chat\\x HTTP/1.1\r\n{_OK}\r\n",
    "encoded backslash": f"GET /chat%5cx HTTP/1.1\r\n{_OK}\r\n",
    "encoded nul": f"GET /chat%00 HTTP/1.1\r\n{_OK}\r\n",
    "encoded line feed": f"GET /chat%0a HTTP/1.1\r\n{_OK}\r\n",
    "nul in the query": f"GET /sign-in?next=%00 HTTP/1.1\r\n{_OK}\r\n",
    "two slashes": f"GET //evil.example/x HTTP/1.1\r\n{_OK}\r\n",
    "unknown method": f"BREW /sign-in HTTP/1.1\r\n{_OK}\r\n",
    "trace": f"TRACE /sign-in HTTP/1.1\r\n{_OK}\r\n",
    "connect": f"CONNECT evil.example:443 HTTP/1.1\r\n{_OK}\r\n",
    "asterisk": f"OPTIONS * HTTP/1.1\r\n{_OK}\r\n",
    "foreign absolute form": "GET http://evil.example/sign-in HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "not http": "hello\r\n\r\n",
}


async def test_request_is_refused_when_it_is_no_good(gateway: Gateway) -> None:
    got = {
        name: (await exchange(gateway.url, raw.encode("latin-1")))[0]
        for name, raw in REFUSED.items()
    }
    assert len(got) >= 34
    assert {name: status for name, status in got.items() if status != 400} == {}


async def test_body_is_refused_when_it_is_declared_too_large(gateway: Gateway) -> None:
    head = f"POST /sign-in HTTP/1.1\r\n{_OK}Content-Length: 99999999\r\n\r\n"
    status, _ = await exchange(gateway.url, head.encode())
    assert status == 413


async def test_body_is_refused_when_it_grows_too_large(gateway: Gateway) -> None:
    browser = gateway.browser()
    await browser.visit("/sign-in")
    answer = await browser.submit("/sign-in", email="a@b.example", password="x" * 300_000)
    assert answer.status == 413

    async def endless() -> object:
        for _ in range(400):
            yield b"x" * 1024

    answer = await browser.send(
        "POST",
        "/sign-in",
        data=endless(),
        headers={
            "origin": "http://alcove.test",
            "content-type": "application/x-www-form-urlencoded",
        },
    )
    assert answer.status == 413


async def test_headers_that_could_pass_for_ours_are_dropped(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    await ada.post("hello", "m1")
    tenant = await gateway.tenant_of("ada@example.org")
    answer = await ada.send("GET", "/api/conversations", headers={"x_tenant_id": "other"})
    assert answer.status == 200
    agent = gateway.spawner.of(tenant).agent
    assert agent is not None
    assert not any("tenant" in name for name in agent.requests[-1][2])


async def test_health_answers_when_asked_by_address(gateway: Gateway) -> None:
    for path in ("/livez", "/readyz"):
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"
        assert (await exchange(gateway.url, request.encode()))[0] == 200
    assert (await gateway.browser().visit("/metrics")).status == 404


@pytest.mark.parametrize("path", ["/", "/chat", "/a%20b", "/%C3%A4", "/.well-known/x", "/a..b"])
def test_target_is_good_when_it_means_one_thing(path: str) -> None:
    check_target(path.encode(), b"q=%zz&x=%2f..")


def test_target_is_refused_when_it_has_no_slash() -> None:
    with pytest.raises(AlcoveError):
        check_target(b"http://x/", b"")
