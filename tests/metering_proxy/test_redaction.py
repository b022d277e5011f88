"""A provider's refusal reaches its caller unchanged, but for the provider's key, which no caller is told."""

import pytest

from metering_proxy.tenant_side.redaction import Redactor
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant
from tests.scripted import ScriptedProvider

_KEY = "sk-provider-key-1234"
_OWN = "sk-sk-own-key-987654"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("your key sk-abcabcabd is expired", "your key ************ is expired"),
        ("sk-abcabcabdsk-abcabcabd", "*" * 24),
        ("sk-abcabcabcabd", "sk-abcabcabcabd"),
        ("sk-absk-abcabcabd", "sk-ab************"),
        ("ends with sk-abcabcab", "ends with sk-abcabcab"),
        ("SK-ABCABCABD", "SK-ABCABCABD"),
        ("", ""),
    ],
)
def test_secret_is_redacted_wherever_the_text_is_cut(text: str, shown: str) -> None:
    data = text.encode()
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            redactor = Redactor("sk-abcabcabd")
            parts = [
                redactor.feed(part) for part in (data[:first], data[first:second], data[second:])
            ]
            assert b"".join([*parts, redactor.rest()]).decode() == shown


@pytest.mark.parametrize("secret", [None, "", "short"])
def test_nothing_is_held_back_for_what_is_no_secret(secret: str | None) -> None:
    redactor = Redactor(secret)
    assert redactor.feed(b"a short word") == b"a short word"
    assert redactor.rest() == b""


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
async def test_key_in_a_providers_refusal_does_not_reach_its_caller(
    house: House, tenant: Tenant, scripted: ScriptedProvider, status: int
) -> None:
    scripted.then(reply=s.error(status, f"Expired key: {_KEY}"))
    answer = await tenant.chat()
    sent = b"".join(scripted.requests[-1].sent)
    assert _KEY.encode() in sent
    assert answer.status == status
    assert answer.body == sent.replace(_KEY.encode(), b"*" * len(_KEY))
    assert [entry["cost_nanos"] for entry in await house.entries(tenant)] == [0]


async def test_tenants_own_key_is_not_told_by_a_refusal_either(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    await house.client.put_own_key(tenant.id, "scripted", _OWN)
    scripted.then(reply=s.error(401, f"Incorrect API key provided: {_OWN}."))
    answer = await tenant.chat()
    assert answer.status == 401
    assert _OWN.encode() not in answer.body
    assert b"Incorrect API key provided: ****" in answer.body
