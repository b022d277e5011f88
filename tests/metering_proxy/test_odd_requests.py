"""Requests whose end, key or path could be read in two ways, sent byte for byte to a tenant's socket: each is one
call or none, and the provider never sees more of them than were answered."""

import asyncio
import json
import re

import pytest

from infra.kit import unix
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_SAID = [{"role": "user", "content": "hi"}]
_BODY = json.dumps({"model": MODEL, "max_tokens": 9, "messages": _SAID}).encode()
_POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\n"
_KEY = b"authorization: Bearer $KEY\r\n"
_LENGTH = b"content-length: %d\r\n" % len(_BODY)
_CHUNKED = b"transfer-encoding: chunked\r\n"
_END = b"connection: close\r\n\r\n"
_AGAIN = _POST + _KEY + _LENGTH + _END + _BODY


def _whole(*headers: bytes, to: bytes = b"/v1/chat/completions") -> bytes:
    """A chat with other headers than usual."""
    start = b"POST %b HTTP/1.1\r\nhost: h\r\n" % to
    return start + b"".join(line + b"\r\n" for line in headers) + _LENGTH + _END + _BODY


def _chunks(size: bytes, after: bytes = b"\r\n0\r\n\r\n") -> bytes:
    """A chat in one chunk, whose size is written like that."""
    return _POST + _KEY + _CHUNKED + _END + size + b"\r\n" + _BODY + after


def _connect(target: bytes, *headers: bytes, version: bytes = b"1.1") -> bytes:
    """A CONNECT of somebody who may not go out."""
    shown = (b"host: a", b"proxy-authorization: Bearer $KEY", *headers)
    return b"CONNECT %b HTTP/%b\r\n" % (target, version) + b"\r\n".join(shown) + b"\r\n\r\n"


_SIZE = b"%x" % len(_BODY)
_SHOWN = b"authorization: Bearer $KEY"
# What is sent, and the statuses of all answers.
ODD: dict[str, tuple[bytes, list[int]]] = {
    "plain": (_AGAIN, [200]),
    "chunked": (_chunks(_SIZE), [200]),
    "capital chunk size": (_chunks(_SIZE.upper()), [200]),
    "zeros before a chunk size": (_chunks(b"0" * 20 + _SIZE), [200]),
    "chunk extension": (_chunks(_SIZE + b";a=b"), [200]),
    "line end in a chunk extension": (_chunks(_SIZE + b';a="\r\n"'), [400]),
    "chunk size with a space": (_chunks(_SIZE + b" "), [400]),
    "chunk size with a sign": (_chunks(b"+" + _SIZE), [400]),
    "chunk size with 0x": (_chunks(b"0x" + _SIZE), [400]),
    "chunk size beyond 64 bits": (_chunks(b"10000000000000000a"), [400]),
    "chunk longer than its size": (_chunks(b"5"), [400]),
    "bare line feed after a chunk size": (_POST + _KEY + _CHUNKED + _END + _SIZE + b"\n" + _BODY, [400]),
    "length in a trailer": (_chunks(_SIZE, b"\r\n0\r\ncontent-length: 5\r\n\r\n"), [400]),
    "key in a trailer": (_POST + _CHUNKED + _END + _SIZE + b"\r\n" + _BODY + b"\r\n0\r\n" + _KEY + b"\r\n", [401]),
    "length and chunks": (_POST + _KEY + _LENGTH + _CHUNKED + _END + _BODY, [400]),
    "two equal lengths": (_POST + _KEY + _LENGTH * 2 + _END + _BODY, [400]),
    "length too short, a request in the rest": (
        _POST + _KEY + b"content-length: 0\r\n\r\n" + _BODY + _AGAIN, [400, 400]),
    "request inside a body": (_POST + _KEY + b"content-length: %d\r\n" % (len(_AGAIN) + 9) + _END + b'{"x":"'
        + _AGAIN + b'"} ', [400]),
    "two requests in one write": (_POST + _KEY + _LENGTH + b"\r\n" + _BODY + _AGAIN, [200, 200]),
    "key twice": (_whole(_SHOWN, _SHOWN), [200]),
    "key in two headers": (_whole(_SHOWN, b"x-api-key: $KEY"), [200]),
    "two keys": (_whole(_SHOWN, b"authorization: Bearer other"), [401]),
    "two keys in two headers": (_whole(_SHOWN, b"api-key: other"), [401]),
    "two keys in one header": (_whole(b"authorization: Bearer $KEY, Bearer other"), [401]),
    "key and a password": (_whole(b"authorization: Basic dTpw", b"x-api-key: $KEY"), [401]),
    "key after a tab": (_whole(b"authorization: Bearer\t$KEY"), [401]),
    "key with a byte more": (_whole(b"authorization: Bearer $KEY\xff"), [401]),
    "key with blanks around": (_whole(b"authorization:  bearer   $KEY  "), [200]),
    "key under a name with an underscore": (_whole(b"x_api_key: $KEY"), [401]),
    "key named as hop-by-hop": (_whole(_SHOWN, b"connection: authorization"), [200]),
    "folded key": (_whole(b"authorization: Bearer\r\n $KEY"), [400]),
    "upgrade to a socket": (_whole(_SHOWN, b"upgrade: websocket", b"connection: upgrade"), [400]),
    "upgrade to HTTP/2": (_whole(_SHOWN, b"upgrade: h2c", b"connection: upgrade, http2-settings"), [400]),
    "packed body by two headers": (_whole(_SHOWN, b"content-encoding: identity", b"content-encoding: br"), [400]),
    "other method in a header": (_whole(_SHOWN, b"x-http-method-override: GET"), [200]),
    "other path in a header": (_whole(_SHOWN, b"x-original-url: /v1/embeddings"), [200]),
    "trace of no text": (_whole(_SHOWN, b"traceparent: \xff\xfe", b"x-request-id: a\xffb"), [200]),
    "hundred headers": (_whole(_SHOWN, *(b"x-a%d: 1" % n for n in range(101))), [431]),
    "long header": (_whole(_SHOWN, b"x-a: " + b"a" * 60_000), [431]),
    "two slashes": (_whole(_SHOWN, to=b"//v1/chat/completions"), [404]),
    "slash at the end": (_whole(_SHOWN, to=b"/v1/chat/completions/"), [404]),
    "slash in an escape": (_whole(_SHOWN, to=b"/v1%2fchat/completions"), [404]),
    "letter in an escape": (_whole(_SHOWN, to=b"/v1/ch%61t/completions"), [404]),
    "capital path": (_whole(_SHOWN, to=b"/V1/chat/completions"), [404]),
    "parameter of a path": (_whole(_SHOWN, to=b"/v1/chat/completions;a=b"), [404]),
    "query": (_whole(_SHOWN, to=b"/v1/chat/completions?api-version=1&key=x"), [200]),
    "tunnel with a body": (_connect(b"a.example:443", b"content-length: 5") + b"hello", [400]),
    "tunnel with chunks": (_connect(b"a.example:443", b"transfer-encoding: chunked") + b"0\r\n\r\n", [400]),
    "tunnel with a user": (_connect(b"u@a.example:443"), [400]),
    "tunnel to a URL": (_connect(b"http://a.example:443"), [400]),
    "tunnel to a path": (_connect(b"/v1/chat/completions"), [400]),
    "tunnel without a port": (_connect(b"a.example"), [400]),
    "tunnel to port 0": (_connect(b"a.example:0"), [400]),
    "tunnel to port 65536": (_connect(b"a.example:65536"), [400]),
    "tunnel with two keys": (_connect(b"a.example:443", b"authorization: Bearer other"), [401]),
    "tunnel of HTTP/1.0": (_connect(b"a.example:443", version=b"1.0"), [403]),
    "request behind a refused tunnel": (_connect(b"a.example:443") + _AGAIN, [403]),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
async def test_request_is_one_call_or_none(
    house: House, tenant: Tenant, scripted: ScriptedProvider, name: str
) -> None:
    sent, statuses = ODD[name]
    if 200 in statuses:
        scripted.always(reply=s.text("x").using(1, 1))
    reader, writer = await unix.open_stream(tenant.socket)
    writer.write(sent.replace(b"$KEY", tenant.key.encode()))
    async with asyncio.timeout(10):
        answers = await reader.read()
        while more := await reader.read():
            answers += more
    writer.close()
    found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]
    assert found == statuses, answers
    assert len(scripted.model_requests) == statuses.count(200)
    for request in scripted.model_requests:
        assert json.loads(request.body) == json.loads(_BODY)
        assert tenant.key not in str(request.headers)


async def test_junk_makes_no_new_series_in_the_metrics(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    async def junk(n: int) -> None:
        await tenant.chat(model=f"no-such-model-{n}")
        await tenant.post(f"/v1/no-such-path-{n}", {})
        await tenant.post(f"/v1beta/models/m{n}:generateContent", {"contents": [{"parts": []}]})
        await tenant.post("/v1/chat/completions", {"model": MODEL, f"member-{n}": n})
        await tenant.post("/v1/chat/completions", {}, key=f"stranger-{n}")
        await tenant.post(f"/connections/c{n}/x", {})

    def series() -> set[bytes]:
        page, _ = house.meter.metrics.render()
        lines = (line.rpartition(b" ")[0] for line in page.splitlines())
        return {line for line in lines if not line.startswith((b"#", b"meter_job"))}

    await junk(0)
    before = series()
    for n in range(1, 30):
        await junk(n)
    assert series() == before
    assert scripted.requests == []
