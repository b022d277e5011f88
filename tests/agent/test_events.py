"""The event log: whoever reloads, cuts or comes late sees every word once."""

import asyncio
import json
import random
from pathlib import Path

from agent import events as readers
from agent.app import App
from agent.store import events
from agent.store.database import Database, Tx
from infra.kit.clock import SystemClock
from tests import scripted as s
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Person, text_of
from tests.waiting import until

WORDS = [f"wörd-{n} 🌍 " for n in range(120)]


async def test_text_is_whole_when_the_page_is_reloaded_a_hundred_times(
    person: Person, meter: ScriptedMeter
) -> None:
    """Snapshot at `seq`, then the events behind `seq`: at any moment of the answer that is the exact text."""
    gates = [s.Gate() for _ in range(4)]
    parts: list[s.Gate | str] = []
    for n, word in enumerate(WORDS):
        parts.append(word)
        if n % 30 == 10:
            parts.append(gates[n // 30])
    meter.then(reply=s.text(*parts).cutting_runes())
    receipt = await person.say("long story")
    turn, conversation = receipt["turn_id"], receipt["conversation_id"]

    async def reload() -> str:
        page = await person.messages(conversation)
        mine = [m for m in page["messages"] if m["turn_id"] == turn and m["role"] == "assistant"]
        text = mine[0]["text"] if mine else ""
        if mine and mine[0]["state"] != "streaming":
            return str(text)
        frames = await person.ended(turn, after=page["seq"])
        for frame in frames:
            if frame["type"] == "TEXT_MESSAGE_CONTENT":
                assert frame["offset"] == len(text), "a gap or a doubled word"
                text += frame["delta"]
        return str(text)

    reloads: list[asyncio.Task[str]] = []
    for gate in gates:
        await gate.reached()
        reloads += [asyncio.create_task(reload()) for _ in range(5)]
        gate.open()
        reloads += [asyncio.create_task(reload()) for _ in range(20)]
    assert len(reloads) == 100
    assert set(await asyncio.gather(*reloads)) == {"".join(WORDS)}


async def test_frames_are_the_same_when_the_stream_is_cut_anywhere(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text(*WORDS))
    turn = (await person.say("long story"))["turn_id"]
    whole = await person.ended(turn)
    chance = random.Random(7)
    for _ in range(30):
        cut = chance.randrange(len(whole))
        first = await person.follow(lambda f, at=whole[cut]["seq"]: f["seq"] == at)  # type: ignore[misc]
        rest = await person.ended(turn, after=first[-1]["seq"]) if cut < len(whole) - 1 else []
        frames = first + [f for f in rest if f["seq"] <= whole[-1]["seq"]]
        assert [f["seq"] for f in frames[: len(whole)]] == [f["seq"] for f in whole]
        assert text_of(frames, turn) == "".join(WORDS)


async def test_reader_is_told_to_read_anew_when_its_epoch_is_foreign(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("x"))
    await person.ended((await person.say("hello"))["turn_id"])
    status = await person.status()
    for epoch, after in (("foreign", 3), (status["epoch"], status["last_seq"] + 1), ("", 0)):
        frames = await person.follow(lambda f: True, epoch=epoch or "none", after=after)
        assert frames[0]["name"] == "log.reset"
        assert (frames[0]["epoch"], frames[0]["seq"]) == (status["epoch"], status["last_seq"])


async def test_reader_is_given_a_beat_when_nothing_happens(app: App) -> None:
    beats = []
    async for found in app.log.follow(0, heartbeat_s=0.02):
        beats.append(found)
        if len(beats) == 3:
            break
    assert beats == [[], [], []]


async def test_reader_is_let_go_when_its_client_leaves(person: Person, app: App) -> None:
    epoch = (await person.status())["epoch"]
    async with person.stream(after=0, epoch=epoch) as response:
        assert (await response.content.readline()).startswith(b":")
        await until(lambda: app.log.readers == 1)
        response.close()
    await until(lambda: app.log.readers == 0, what="the reader's end")


async def test_numbers_never_come_again_when_old_events_are_forgotten(tmp_path: Path) -> None:
    db = Database(tmp_path / "agent.db", SystemClock())
    db.open()
    log = readers.Log(db)
    await log.start()

    def fill(tx: Tx) -> None:
        for n in range(events.KEEP + 10):
            events.append(tx, "CUSTOM", "c", None, name="n", n=n)
        events.prune(tx)

    await db.write(fill)
    epoch, last = await log.position()
    assert last == events.KEEP + 10
    assert not await log.can_follow(epoch, 3)
    assert await log.can_follow(epoch, last - 5)
    async for found in log.follow(last - 5, heartbeat_s=1):
        assert [seq for seq, _ in found] == list(range(last - 4, last + 1))
        assert json.loads(found[0][1])["seq"] == last - 4
        break
    await db.close()


async def test_epoch_is_new_when_the_machine_was_restarted(tmp_path: Path) -> None:
    async def epoch_of(boot: str | None) -> str:
        db = Database(tmp_path / "agent.db", SystemClock())
        db.open()
        found = await db.read(events.epoch)
        if boot is not None:
            await db.write(
                lambda tx: tx.run("UPDATE meta SET value = ? WHERE key = 'boot_id'", boot)
            )
        await db.close()
        return found

    first = await epoch_of(None)
    assert await epoch_of("another-boot") == first
    assert await epoch_of(None) != first
