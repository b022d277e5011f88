"""What a request says at its head: how a key may be shown, what its body is, and what it takes for an answer."""

import gzip
import json
from typing import Any
from urllib.parse import unquote

import pytest

from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import ScriptedProvider

_BODY = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
_JSON = {"content-type": "application/json"}


async def _post(tenant: Tenant, headers: dict[str, str], body: bytes = _BODY) -> tuple[int, str]:
    """Status and our reason, if any, of one chat."""
    url = "http://localhost/v1/chat/completions"
    how: dict[str, Any] = {"skip_auto_headers": ("content-type", "accept-encoding")}
    async with tenant.session.post(url, headers=headers, data=body, **how) as answer:
        await answer.read()
        return answer.status, answer.headers.get("x-alcove-reason", "")


_KEYS: list[tuple[dict[str, str], tuple[int, str]]] = [
    ({"authorization": "bearer {key}"}, (200, "")),
    ({"authorization": "BEARER   {key}"}, (200, "")),
    ({"authorization": "Bearer {key}", "x-api-key": "{key}"}, (200, "")),
    # Clients that know two headers send the one that is not configured empty.
    ({"authorization": "", "x-api-key": "{key}"}, (200, "")),
    ({"authorization": "Bearer", "x-api-key": "{key}"}, (200, "")),
    ({"authorization": "Bearer ", "x-goog-api-key": "{key}"}, (200, "")),
    ({"authorization": "Bearer {key}", "x-api-key": ""}, (200, "")),
    ({"authorization": "Bearer "}, (401, "no_key")),
    ({"x-api-key": ""}, (401, "no_key")),
    ({"x-api-key": "Bearer {key}"}, (401, "key")),
    ({"authorization": "Basic", "x-api-key": "{key}"}, (401, "two_keys")),
    ({"authorization": "{key}"}, (401, "key")),
    ({"authorization": "Bearer {key}x"}, (401, "key")),
    ({"authorization": "Bearer {key},{key}"}, (401, "key")),
]


async def test_key_is_read_as_its_client_means_it(
    tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x"))
    for shown, answer in _KEYS:
        keys = {name: value.format(key=tenant.key) for name, value in shown.items()}
        assert await _post(tenant, {**_JSON, **keys}) == answer, shown


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", f"/v1beta/models/{MODEL}:generateContent"]
)
async def test_key_in_a_query_opens_nothing_and_goes_nowhere(
    house: House, tenant: Tenant, scripted: ScriptedProvider, path: str
) -> None:
    url = f"http://localhost{path}?key={tenant.key}"
    async with tenant.session.post(url, data=_BODY, headers=_JSON) as answer:
        assert (answer.status, answer.headers["x-alcove-reason"]) == (401, "no_key")
        assert tenant.key not in await answer.text()
    assert scripted.requests == []


async def test_packed_body_is_refused_by_name_whether_or_not_it_is_packed(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    for coding in ("gzip", "GZIP", "zstd", "br", "deflate", "identity, gzip", "x"):
        headers = {**_JSON, "authorization": f"Bearer {tenant.key}", "content-encoding": coding}
        for body in (_BODY, gzip.compress(_BODY)):
            assert await _post(tenant, headers, body) == (400, "content_encoding"), coding
    assert scripted.requests == []
    assert await house.rows("SELECT * FROM reservation") == []


_SAID: list[dict[str, str]] = [
    {},
    {"content-type": "application/json; charset=UTF-8"},
    {"content-type": "application/json; charset=utf-7"},
    {"content-type": "application/json; charset=utf-16"},
    {"content-type": "application/x-www-form-urlencoded"},
    {"content-type": "multipart/form-data; boundary=x"},
    {"content-type": "text/plain"},
    {"content-type": "application/json", "content-encoding": "identity"},
]


async def test_provider_is_told_what_the_body_was_read_as(
    tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x"))
    for said in _SAID:
        answer = await _post(tenant, {"authorization": f"Bearer {tenant.key}", **said})
        assert answer == (200, ""), said
        request = scripted.model_requests[-1]
        assert request.headers["content-type"] == "application/json", said
        assert "content-encoding" not in request.headers
        assert request.json["messages"] == json.loads(_BODY)["messages"]
    assert len(scripted.model_requests) == len(_SAID)


_ACCEPTED = [
    ("gzip", "gzip"),
    ("br, gzip;q=0.5", "gzip"),
    ("GZIP; q=1.0", "gzip"),
    ("x-gzip", "gzip"),
    ("gzip;q=0", "identity"),
    ("identity, gzip; q=0.000", "identity"),
    ("gzip, gzip;q=0", "identity"),
    ("bugzipped", "identity"),
    ("br", "identity"),
    ("", "identity"),
]


async def test_answer_is_asked_for_gzipped_only_where_its_caller_takes_it(
    tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x"))
    for accepted, asked in _ACCEPTED:
        headers = {**_JSON, "authorization": f"Bearer {tenant.key}", "accept-encoding": accepted}
        assert await _post(tenant, headers) == (200, "")
        assert scripted.model_requests[-1].headers["accept-encoding"] == asked, accepted


_NAMES = {
    "模型-1": "%E6%A8%A1%E5%9E%8B-1",
    "é": "%C3%A9",
    "Модель": "%D0%9C%D0%BE%D0%B4%D0%B5%D0%BB%D1%8C",
    "İ": "%C4%B0",
    "ſ": "%C5%BF",
    "[x]": "[x]",
    "m\u200b": "m%E2%80%8B",
    "a%2fb": "a%252fb",
    "a b": "a b",
    "m/../x?y=1#z": "m/../x?y=1#z",
}


async def test_model_may_have_any_name_that_can_be_seen(
    house: House, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x"))
    rows = [wire.ModelRow(id=name, input_nanos=1, output_nanos=1) for name in _NAMES]
    await house.connect(scripted, more=rows)
    tenant = await house.tenant()
    for name, told in _NAMES.items():
        body = {"model": name, "messages": [{"role": "user", "content": "hi"}]}
        answer = await tenant.post("/v1/chat/completions", body)
        assert (answer.status, answer.headers.get("x-alcove-model")) == (200, f"scripted/{told}")
        assert unquote(told) == name == scripted.model_requests[-1].json["model"]


async def test_model_of_any_name_can_be_in_a_chain_and_a_keys_list(
    house: House, scripted: ScriptedProvider
) -> None:
    names = [name for name in _NAMES if " " not in name and "?" not in name]
    rows = [wire.ModelRow(id=name, input_nanos=1, output_nanos=1) for name in names]
    await house.connect(scripted, more=rows)
    tenant = await house.tenant("plus", requests_minute=None)
    for name in names:
        await house.client.put_fallback("fast", [f"scripted/{name}"])
        asked = wire.ApiKeyRequest(name="k", models=[f"scripted/{name}"])
        key = await house.client.create_api_key(tenant.id, asked)
        scripted.then(reply=s.text("x"))
        body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
        answer = await tenant.post("/v1/chat/completions", body, key=key.key)
        assert (answer.status, scripted.model_requests[-1].json["model"]) == (200, name)


@pytest.mark.parametrize(
    "name", ["", " ", " m", "m ", "\u3000m", "a\nb", "a\r\nx-b: c", "m\x7f", "m\t"]
)
def test_model_has_no_name_that_cannot_be_seen(name: str) -> None:
    with pytest.raises(ValueError, match="id"):
        wire.ModelRow(id=name, input_nanos=1, output_nanos=1)
