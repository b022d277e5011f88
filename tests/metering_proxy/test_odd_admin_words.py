"""What an administrator's tool may send by mistake: 400 with a word for what is wrong, on either database."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from yarl import URL

from infra.kit import client as kit_client
from tests.metering_proxy.house import SECRET, House

pytestmark = pytest.mark.thorough

_T = f"/tenants/{'a' * 16}"
_STATE = b'{"plan":"free","status":"active","version":'
_LATE = 2**53
# Method, path and body of what is refused.
ODD: list[tuple[str, str, bytes]] = [
    ("GET", f"/usage?from_at={_LATE - 86_400_000}&to_at={_LATE}&group=day", b""),
    ("GET", f"/usage?from_at=0&to_at={_LATE + 1}", b""),
    ("GET", "/usage?from_at=-1&to_at=5", b""),
    ("GET", "/usage?from_at=1e3&to_at=5000", b""),
    ("GET", "/usage?from_at=NaN&to_at=5", b""),
    ("GET", "/usage?from_at=0&to_at=5&group=day%00", b""),
    ("GET", "/usage?from_at=0&to_at=5&zone=UTC%00", b""),
    ("GET", "/usage?from_at=0&to_at=5&zone=..%2FUTC", b""),
    ("GET", "/usage?from_at=0&to_at=5&tenant=%00", b""),
    ("GET", "/usage/export?from_at=5&to_at=5", b""),
    ("GET", "/usage/export?from_at=0&to_at=5&format=xlsx", b""),
    ("GET", "/requests?before=1", b""),
    ("GET", "/requests?before=99999999999999999.x", b""),
    ("GET", "/requests?limit=0", b""),
    ("GET", "/requests/a%00b", b""),
    ("GET", "/audit?before=%00", b""),
    ("GET", "/marks?percent=0", b""),
    ("PUT", "/fallbacks/a%00b", b'{"targets":[]}'),
    ("PUT", "/fallbacks/a%0Ab", b'{"targets":[]}'),
    ("PUT", "/fallbacks/" + "a" * 265, b'{"targets":[]}'),
    ("PUT", "/fallbacks/fast", b'{"targets":["\\u0000"]}'),
    ("PUT", "/fallbacks/fast", b'{"targets":["\\ud800"]}'),
    ("PUT", "/fallbacks/fast", b'{"targets":"p/m"}'),
    ("POST", "/tenants/query", b'{"ids":["\\u0000"]}'),
    ("POST", "/tenants/query", b'{"ids":["\\ud800"]}'),
    ("POST", "/tenants/query", b'{"ids":["a\\udfffb"]}'),
    ("POST", "/tenants/query", b'{"ids":[null]}'),
    ("POST", "/tenants/query", b'{"zone":"\\ud800"}'),
    ("POST", "/tenants/query", b'{"offset":9007199254740993}'),
    ("POST", "/tenants/query", b'{"limit":1e400}'),
    ("PUT", _T, _STATE + b"NaN}"),
    ("PUT", _T, _STATE + b"-Infinity}"),
    ("PUT", _T, _STATE + b"1e400}"),
    ("PUT", _T, _STATE + b"-1}"),
    ("PUT", _T, _STATE + b"1.5}"),
    ("PUT", _T, _STATE + b"true}"),
    ("PUT", _T, _STATE + b"9" * 5_000 + b"}"),
    ("PUT", _T, _STATE + b'1,"quota":{"requests_day":-1}}'),
    ("PUT", _T, _STATE + b'1,"quota":{"requests_day":9007199254740993}}'),
    ("PUT", _T, _STATE + b'1,"quota":{"note":"\\u0000"}}'),
    ("PUT", _T, _STATE + b'1,"quota":{"note":"\\ud83d"}}'),
    ("PUT", _T, b'{"plan":"\\ud800","status":"active","version":1}'),
    ("PUT", _T, b"[" * 100_000),
    ("PUT", _T, b'{"a":' * 100_000),
    ("PUT", _T, b"\xff\xfe{"),
    ("PUT", _T, b""),
    ("PUT", _T, b"null"),
    ("PUT", f"{_T}/grants/g", b'{"amount_nanos":0}'),
    ("PUT", f"{_T}/grants/g", b'{"amount_nanos":-5}'),
    ("PUT", f"{_T}/grants/g", b'{"amount_nanos":9007199254740993}'),
    ("PUT", f"{_T}/grants/g", b'{"amount_nanos":5,"expires_at":1}'),
    ("PUT", f"{_T}/grants/g", b'{"amount_nanos":5,"kind":"grace"}'),
    ("PUT", f"{_T}/grants/g", b'{"amount_nanos":5,"note":"\\ud83d"}'),
    ("PUT", f"{_T}/grants/g%00", b'{"amount_nanos":5}'),
    ("POST", f"{_T}/api-keys", b'{"name":"x","expires_at":0}'),
    ("POST", f"{_T}/api-keys", b'{"name":"\\ud800"}'),
    ("POST", f"{_T}/api-keys", b'{"name":"x","models":["a/\\ud800"]}'),
    ("PUT", f"/connections/{'a' * 16}/hub", b'{"origin":"https://a.example","token":"\\ud800"}'),
    ("PUT", f"/connections/{'a' * 16}/a%2Fb", b'{"origin":"https://a.example","token":"t"}'),
]


@pytest.fixture
async def control(both: House) -> AsyncIterator[aiohttp.ClientSession]:
    """A session to the control listener that sends what it is told."""
    session, _ = kit_client.session(f"unix://{both.root}/control.sock")
    yield session
    await session.close()


async def test_odd_words_are_refused_and_change_nothing(
    both: House, control: aiohttp.ClientSession
) -> None:
    said = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
    for method, path, body in ODD:
        url = URL(f"http://localhost{path}", encoded=True)
        async with control.request(method, url, headers=said, data=body) as answer:
            told = await answer.json()
        # A path that no id can stand in is no path.
        assert answer.status in (400, 404), (method, path, body[:80])
        assert told["error"]["code"] in ("invalid", "not_found"), (method, path, body[:80])
    for table in ("tenant", "credit_grant", "api_key", "fallback", "token_connection"):
        assert await both.rows(f"SELECT * FROM {table}") == [], table
