"""What is ambiguous is refused with 400, never served, and never answered with 500."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.kit import httpd
from infra.kit.http1.heads import Malformed
from infra.kit.httpd.guard import checked_target
from tests.kit.httpd.wire import echo, listening

HEAD = b"POST /x HTTP/1.1\r\nhost: h\r\n"
AMBIGUOUS = {
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "no host in 1.0": b"GET / HTTP/1.0\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "two equal hosts": b"GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n",
    "empty host": b"GET / HTTP/1.1\r\nhost: \r\n\r\n",
    "host with a path": b"GET / HTTP/1.1\r\nhost: a/b\r\n\r\n",
    "host with a user": b"GET / HTTP/1.1\r\nhost: u@a\r\n\r\n",
    "host list": b"GET / HTTP/1.1\r\nhost: a, b\r\n\r\n",
    "length and coding": HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": HEAD + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    "gzip coding": HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "odd coding": HEAD + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding identity": HEAD + b"transfer-encoding: identity\r\n\r\n",
    "two codings": HEAD
    + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding in 1.0": b"POST / HTTP/1.0\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"content-length: 3\r\ncontent-length: 3\r\n\r\nabc",
    "length list": HEAD + b"content-length: 3, 3\r\n\r\nabc",
    "signed length": HEAD + b"content-length: +3\r\n\r\nabc",
    "negative length": HEAD + b"content-length: -3\r\n\r\nabc",
    "hex length": HEAD + b"content-length: 0x3\r\n\r\nabc",
    "empty length": HEAD + b"content-length: \r\n\r\nabc",
    "long length": HEAD + b"content-length: 99999999999999999999\r\n\r\nabc",
    "bare line feeds": b"GET / HTTP/1.1\nhost: h\n\n",
    "one bare line feed": b"GET / HTTP/1.1\r\nhost: h\nx: y\r\n\r\n",
    "bare carriage return": b"GET / HTTP/1.1\r\nhost: h\rx: y\r\n\r\n",
    "folded header": b"GET / HTTP/1.1\r\nhost: h\r\nx: y\r\n z\r\n\r\n",
    "NUL in a value": b"GET / HTTP/1.1\r\nhost: h\r\nx: a\0b\r\n\r\n",
    "NUL in a name": b"GET / HTTP/1.1\r\nhost: h\r\nx\0y: a\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nhost: h\r\nx : a\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nhost: h\r\nxyz\r\n\r\n",
    "empty name": b"GET / HTTP/1.1\r\nhost: h\r\n: a\r\n\r\n",
    "absolute form": b"GET http://h/ HTTP/1.1\r\nhost: h\r\n\r\n",
    "asterisk form": b"OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n",
    "no slash": b"GET x HTTP/1.1\r\nhost: h\r\n\r\n",
    "fragment": b"GET /a#b HTTP/1.1\r\nhost: h\r\n\r\n",
    "broken escape": b"GET /%zz HTTP/1.1\r\nhost: h\r\n\r\n",
    "short escape": b"GET /a%4 HTTP/1.1\r\nhost: h\r\n\r\n",
    "not UTF-8": b"GET /%ff HTTP/1.1\r\nhost: h\r\n\r\n",
    "overlong UTF-8": b"GET /%c0%ae HTTP/1.1\r\nhost: h\r\n\r\n",
    "raw bytes": b"GET /\xc3\xbc HTTP/1.1\r\nhost: h\r\n\r\n",
    "NUL escape": b"GET /a%00 HTTP/1.1\r\nhost: h\r\n\r\n",
    "line end escape": b"GET /a%0d%0a HTTP/1.1\r\nhost: h\r\n\r\n",
    "climbing": b"GET /a/../b HTTP/1.1\r\nhost: h\r\n\r\n",
    "climbing, encoded": b"GET /a%2f..%2fb HTTP/1.1\r\nhost: h\r\n\r\n",
    "climbing, dots encoded": b"GET /a/%2e%2E/b HTTP/1.1\r\nhost: h\r\n\r\n",
    "climbing, backslash": b"GET /a%5c..%5cb HTTP/1.1\r\nhost: h\r\n\r\n",
    "dot segment": b"GET /./a HTTP/1.1\r\nhost: h\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": b"GET / HTTP/1.2\r\nhost: h\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "no version": b"GET / \r\nhost: h\r\n\r\n",
    "unknown method": b"GETT / HTTP/1.1\r\nhost: h\r\n\r\n",
    "lower-case method": b"get / HTTP/1.1\r\nhost: h\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a binary": bytes(range(256)),
    "upgrade with a body": HEAD
    + b"connection: upgrade\r\nupgrade: websocket\r\ncontent-length: 3\r\n\r\nabc",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_request_is_400_when_it_has_no_one_meaning(name: str, tmp_path: Path) -> None:
    served: list[str] = []

    async def handler(request: httpd.Request) -> None:
        served.append(request.target)
        await echo(request)

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(AMBIGUOUS[name])
        reply = await client.reply()
        assert reply.status == 400, reply
        assert reply.headers["connection"] == "close"
        assert b'"code":"invalid"' in reply.body
        assert served == []
        assert await client.ended()


@pytest.mark.parametrize("name", [n for n, raw in AMBIGUOUS.items() if raw.startswith(b"GET /")])
async def test_refusal_of_a_head_has_no_body(name: str, tmp_path: Path) -> None:
    asked = AMBIGUOUS[name].replace(b"GET ", b"HEAD ", 1)
    async with listening(tmp_path, echo) as there, there.client() as client:
        client.send(asked)
        reply = await client.reply(bodiless=True)
        assert (reply.status, reply.headers["content-length"]) == (400, "0")
        assert await client.ended()


async def test_body_is_400_when_its_chunks_are_malformed(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        for chunks in (b"zz\r\n", b"3\r\nabcd\r\n", b"3;\0\r\nabc\r\n", b"-1\r\n", b"3\nabc\n"):
            reply = await there.ask(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks)
            assert reply.status == 400, chunks


async def test_header_is_dropped_when_its_name_could_pass_for_another(tmp_path: Path) -> None:
    seen: list[list[tuple[str, str]]] = []

    async def handler(request: httpd.Request) -> None:
        seen.append(request.headers)
        await request.respond(204)

    async with listening(tmp_path, handler) as there:
        await there.ask(b"GET / HTTP/1.1\r\nHost: h\r\nX_Tenant_Id: a\r\nX-Ok: B\r\n\r\n")
    assert seen == [[("host", "h"), ("x-ok", "B")]]


async def test_connect_is_501_when_no_tunnel_is_offered(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        reply = await there.ask(b"CONNECT h:443 HTTP/1.1\r\nhost: h\r\n\r\n")
    assert reply.status == 501


async def test_upgrade_is_ignored_when_it_is_asked_for(tmp_path: Path) -> None:
    ask = b"GET /%d HTTP/1.1\r\nhost: h\r\nconnection: Upgrade, keep-alive\r\nupgrade: h2c\r\n\r\n"
    async with listening(tmp_path, echo) as there, there.client() as client:
        client.send(ask % 1 + ask % 2)
        assert (await client.reply()).headers["x-target"] == "/1"
        assert (await client.reply()).headers["x-target"] == "/2"


async def test_target_arrives_byte_for_byte_when_it_is_odd_but_sound(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        for target in ("/", "/a%2Fb//c?x=%20+&y=%C3%BC&&?", "/user%2Fa/x", "/a..b/...", '/"<>|'):
            reply = await there.ask(f"GET {target} HTTP/1.1\r\nhost: h\r\n\r\n".encode())
            assert (reply.status, reply.headers.get("x-target")) == (200, target)


@given(raw=st.binary(max_size=60) | st.text("/.%25eE0f2cA?\\#", max_size=30).map(str.encode))
@settings(max_examples=400, deadline=None)
def test_target_climbs_nowhere_when_it_is_let_in(raw: bytes) -> None:
    try:
        target = checked_target(b"/" + raw)
    except Malformed:
        return
    assert target.encode() == b"/" + raw
    decoded = unquote(target.partition("?")[0], errors="strict")
    assert ".." not in decoded.replace("\\", "/").split("/")
    assert all(c.isprintable() or c > "\x9f" for c in decoded if c < "\x20")


SOUND = (
    b"POST /a%2Fb?c=d HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\nX-Y: z\r\n\r\nhello"
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
)
EDITS = st.lists(
    st.tuples(st.integers(0, len(SOUND)), st.integers(0, 3), st.binary(max_size=3)), max_size=4
)


@given(edits=EDITS)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_answer_is_never_500_when_bytes_are_changed(
    edits: list[tuple[int, int, bytes]], tmp_path: Path
) -> None:
    data = SOUND
    for at, removed, added in edits:
        data = data[:at] + added + data[at + removed :]
    hasty = httpd.Limits(head_s=0.02, idle_s=0.02, body_s=0.02)
    async with listening(tmp_path, echo, hasty) as there, there.client() as client:
        client.send(data)
        seen = await client.reader.read()
        statuses = {int(found) for found in re.findall(rb"HTTP/1.1 (\d+)", seen)}
        assert statuses <= {200, 400, 408, 431, 501}
