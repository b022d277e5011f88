"""No id of one person means anything to another, on any route; a new route with an id must be asked here."""

from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts

from gateway.app import create_app
from gateway.settings import GatewaySettings
from infra.kit import ids
from metering_proxy.wire import GrantRequest
from tests.journeys import evidence
from tests.journeys.fixtures import ON_BOTH
from tests.journeys.house import House, agent_pids
from tests.journeys.pair import Pair

# Every route of the gateway that takes an id. `{…}` is filled with what belongs to Ada.
ASKED: list[tuple[str, str, object]] = [
    ("GET", "/api/conversations/{conversation_id}/messages", None),
    ("DELETE", "/api/conversations/{conversation_id}", None),
    ("PUT", "/api/turns/{turn_id}/cancellation", None),
    ("POST", "/api/turns/{turn_id}/retries", {"client_message_id": "01k9z3e7m2q8x4v6t0a1b2c3d4"}),
    ("DELETE", "/api/memory/{fact_id}", None),
    ("DELETE", "/api/pending-messages/{client_message_id}", None),
    ("POST", "/api/pending-messages/{client_message_id}/retries", None),
    ("POST", "/account/sessions/{session_id}/revocation", None),
    ("POST", "/account/keys/programs/{key}/rotations", None),
    ("POST", "/account/keys/programs/{key}/revocation", None),
    ("POST", "/account/keys/providers/{provider}/deletion", None),
    ("GET", "/admin/requests/{call}", None),
    ("GET", "/admin/tenants/{tenant}", None),
    ("POST", "/admin/tenants/{tenant}/plan", None),
    ("POST", "/admin/tenants/{tenant}/quota", None),
    ("POST", "/admin/tenants/{tenant}/suspension", None),
    ("POST", "/admin/tenants/{tenant}/resumption", None),
    ("POST", "/admin/tenants/{tenant}/instance", None),
    ("POST", "/admin/tenants/{tenant}/egress", None),
    ("POST", "/admin/tenants/{tenant}/grants", None),
    ("POST", "/admin/tenants/{tenant}/grants/{grant}/revocation", None),
    ("POST", "/admin/tenants/{tenant}/password-links", None),
    ("GET", "/admin/providers/{provider}", None),
    ("POST", "/admin/providers/{provider}", None),
    ("POST", "/admin/providers/{provider}/probes", None),
    ("POST", "/admin/providers/{provider}/default", None),
    ("POST", "/admin/providers/{provider}/deletion", None),
]
# Ids that a person makes: with them Bob writes in a conversation of his own, whatever Ada calls hers.
MADE_BY_PEOPLE = {
    ("PUT", "/api/conversations/{conversation_id}"),
    ("POST", "/api/conversations/{conversation_id}/messages"),
    ("GET", "/chat/{conversation_id}"),
}
NOT_OF_A_PERSON = {
    ("GET", "/setup/{token}"),
    ("POST", "/setup/{token}"),
    ("GET", "/password/{token}"),
    ("POST", "/password/{token}"),
    # The house's providers, with a key of one's own.
    ("POST", "/account/keys/providers/{provider}"),
}


def test_every_route_with_an_id_is_asked_below(tmp_path: Path) -> None:
    settings = GatewaySettings(
        deployment="routes",
        service_secret="s" * 32,
        deployment_secret="d" * 32,
        sealing_key="0" * 64,
        gateway_database_url=f"sqlite:///{tmp_path}/none.db",
        public_url="http://127.0.0.1:1",
        spawner_url="http://127.0.0.1:1",
        meter_url="http://127.0.0.1:1",
    )
    with_ids = {
        (method, route.path)
        for route in iter_route_contexts(create_app(settings).routes)
        if "{" in (route.path or "") and not str(route.path).startswith("/static/")
        for method in set(route.methods or ()) - {"HEAD"}
    }
    asked = {(method, path) for method, path, _ in ASKED}
    assert with_ids == asked | MADE_BY_PEOPLE | NOT_OF_A_PERSON


@pytest.mark.thorough
@ON_BOTH
async def test_every_id_of_one_is_unknown_when_the_other_names_it(house: House, pair: Pair) -> None:
    form = {"name": "mine", "lasts": "30"}
    assert await pair.ada.post_form("/account/keys/programs", pair.ada.csrf, **form) == 200
    [provider] = await house.meter.providers()
    await house.meter.put_own_key(pair.tenant, provider.id, "sk-ada-pays-herself")
    given = GrantRequest(amount_nanos=5_000_000_000, note="for a lost afternoon")
    await house.meter.put_grant(pair.tenant, ids.ulid(), given)
    ids_of_hers = await everything_of(house, pair)
    for method, path, body in ASKED:
        named = path.format(**ids_of_hers)
        if path.startswith("/api"):
            status, answer = await pair.bob.call(method, named, body)
        elif method == "GET":
            status, answer = await pair.bob.call(method, named)
        else:
            form = {"plan": "plus", "reason": "because", "limit_usd": "1", "action": "stop"}
            form |= {"amount_usd": "1", "egress": "on"}
            status, answer = await pair.bob.post_form(named, pair.bob.csrf, **form), None
        wanted = (403, 404) if path.startswith("/admin") else (404,)
        assert status in wanted, f"{method} {path} answered {status}: {answer}"
    status, mine = await pair.bob.call("GET", "/api/conversations")
    assert (status, mine["conversations"]) == (200, [])
    status, found = await pair.bob.call("GET", "/api/conversations?q=xylophone")
    assert (status, found["conversations"]) == (200, [])
    assert ids_of_hers == await everything_of(house, pair)
    assert pair.tenant in agent_pids(house)
    status, still = await pair.ada.call("GET", "/api/session")
    assert status == 200, still


async def everything_of(house: House, pair: Pair) -> dict[str, str]:
    """An id of each kind that is Ada's, read from where it is kept."""
    [session_row] = await evidence.rows(
        house,
        "gateway",
        "SELECT session.id AS id FROM session JOIN account ON account.id = account_id WHERE email = :e",
        e=pair.ada.email,
    )
    [fact] = evidence.agent_rows(house, pair.tenant, "SELECT id FROM fact WHERE relation = 'name'")
    [own_key] = await house.meter.own_keys(pair.tenant)
    [grant] = [one for one in await house.meter.grants(pair.tenant) if one.revoked_at is None]
    [key] = await evidence.rows(
        house, "metering_proxy", "SELECT id FROM api_key WHERE revoked_at IS NULL"
    )
    calls = await evidence.rows(
        house,
        "metering_proxy",
        "SELECT request_id FROM entry WHERE account = :t ORDER BY 1",
        t=pair.tenant,
    )
    [kept] = evidence.agent_rows(
        house, pair.tenant, "SELECT client_message_id AS id FROM message WHERE role = 'user'"
    )
    assert len(await pair.ada.messages(pair.conversation)) == 2
    return {
        "conversation_id": pair.conversation,
        "turn_id": pair.turn,
        "fact_id": str(fact["id"]),
        "client_message_id": str(kept["id"]),
        "session_id": str(session_row["id"]),
        "tenant": pair.tenant,
        "provider": own_key.provider,
        "key": str(key["id"]),
        "call": str(calls[0]["request_id"]),
        "grant": grant.id,
    }
