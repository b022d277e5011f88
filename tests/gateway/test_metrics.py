"""What Prometheus is told: outcomes, never whose."""

import aiohttp

from gateway.app import control_app
from gateway.limits import Bucket
from tests.gateway.conftest import Gateway, Serve
from tests.quickly import serving
from tests.waiting import until


async def _scraped(gateway: Gateway) -> dict[str, float]:
    async with (
        serving(control_app(gateway.app), "http://127.0.0.1:0") as url,
        aiohttp.ClientSession() as session,
        session.get(url + "/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("gateway_"))
    return {name: float(value) for name, value in pairs}


async def test_outcomes_are_counted_and_nobody_is_named(serve: Serve) -> None:
    gateway = await serve(sign_in_account=Bucket(1, 3600))
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    for _ in range(2):
        await gateway.browser().sign_in("ada@example.org", "no")
    assert (await ada.api("GET", "/api/conversations")).status == 503
    await ada.post("hello", "m1")
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: memory.by_client_id)
    assert (await ada.api("GET", "/api/conversations")).status == 200
    async with ada.stream() as stream:
        await until(lambda: stream.frames)
        seen = await _scraped(gateway)
    assert seen['gateway_doors_total{door="sign_up",outcome="opened"}'] == 1
    assert seen['gateway_doors_total{door="sign_in",outcome="refused"}'] == 1
    assert seen['gateway_doors_total{door="sign_in",outcome="throttled"}'] == 1
    assert seen['gateway_relayed_total{outcome="answered"}'] >= 2
    assert seen['gateway_relayed_total{outcome="not_ready"}'] >= 1
    assert seen["gateway_messages_kept_total"] == 1
    assert seen['gateway_messages_handed_over_total{outcome="delivered"}'] == 1
    assert seen["gateway_open_streams"] == 1
    route = "/api/conversations/{conversation_id}/messages"
    name = f'gateway_http_requests_total{{method="POST",route="{route}",status="202"}}'
    assert seen[name] == 1
    assert not any(word in name for name in seen for word in (tenant, "ada", "example.org"))
