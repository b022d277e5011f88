"""The main story in its shortest form: sign up, wake, ask, read the answer word by word."""

from tests.gateway.conftest import Gateway
from tests.waiting import until


async def test_answer_streams_when_a_new_person_asks(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    page = await ada.visit("/chat")
    assert page.status == 200
    tenant = await gateway.tenant_of("ada@example.org")
    async with ada.stream() as stream:
        await until(lambda: stream.named("log.reset"))
        answer = await ada.post("hello there", "m1")
        assert (answer.status, answer.json["state"]) == (202, "queued")
        await until(lambda: "RUN_FINISHED" in stream.types())
        assert stream.text() == "You said: hello there "
        assert [f["state"] for f in stream.named("spawn.progress")][-1] == "ready"
    assert f"wake {tenant} page" in gateway.spawner.calls


async def test_message_is_kept_and_handed_over_when_the_agent_sleeps(gateway: Gateway) -> None:
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    async with ada.stream() as stream:
        answer = await ada.post("are you there", "m1")
        assert (answer.status, answer.json["state"]) == (202, "waiting")
        await until(lambda: any(frame["messages"] for frame in stream.named("pending")))
        await until(lambda: gateway.spawner.of(tenant).state == "starting")
        await gateway.spawner.become_ready(tenant)
        await until(lambda: not stream.named("pending")[-1]["messages"])
    assert list(gateway.spawner.of(tenant).memory.by_client_id) == ["m1"]
