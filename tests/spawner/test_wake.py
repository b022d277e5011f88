"""From nothing to a ready agent: the phases that a browser sees, and what lies on disk then."""

import os

from tests.spawner.house import House, tenant


async def test_wake_reaches_ready_when_never_started(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        assert (await at.client.instance(who)).state == "absent"
        first = await at.client.wake(who, "message")
        assert (first.state, first.generation, first.url) == ("creating", 1, None)
        ready = await at.reach(who, "ready")
        assert ready.url is not None
        assert ready.url.endswith(f"/t/{who}/1/agent/agent.sock")
        assert ready.owner_uid == os.geteuid()
        assert ready.alive_because is not None
        phases = [event.phase for event in await at.spawner.journal.after(who, 0)]
        assert phases == ["key", "volume", "create", "start", "answering", "ready"]
