"""A scripted assistant behind the preview's chat page: it keeps the contracts' log, snapshots and frames.

It is told what to do by the scene and by the words of the message, so that a designer or a test can ask
for a slow answer, a tool, a refusal or hostile Markdown. Nothing is stored.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from infra.kit.ids import ulid
from tests.pages.preview import frames, words
from tests.pages.preview.frames import PHASES, Frame, now_ms


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Assistant:
    """One person's assistant: conversations, the numbered log, and whoever listens."""

    pace_s: float = 0.03
    epoch: str = field(default_factory=ulid)
    state: str = "ready"
    percent: int = 37
    conversations: dict[str, Frame] = field(default_factory=dict)
    messages: dict[str, list[Frame]] = field(default_factory=dict)
    log: list[Frame] = field(default_factory=list)
    phases: list[Frame] = field(default_factory=list)
    may_wake: asyncio.Event = field(default_factory=_set)
    pending: list[Frame] = field(default_factory=list)
    accepted: dict[str, Frame] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    listeners: set[asyncio.Queue[Frame | None]] = field(default_factory=set)
    generation: int = 0
    is_counted: bool = True

    def tell(self, frame: Frame) -> None:
        """Hands one frame to every open stream."""
        for queue in self.listeners:
            queue.put_nowait(frame)

    def append(self, kind: str, where: str, turn: str | None, **more: Any) -> Frame:
        """Numbers and keeps one frame of the agent's log, then tells it."""
        frame = {
            "type": kind,
            "seq": len(self.log) + 1,
            "at": now_ms(),
            "conversation_id": where,
            "turn_id": turn,
            **more,
        }
        self.log.append(frame)
        self.tell(frame)
        return frame

    def cursor_of(self, frame: Frame) -> str:
        """The opaque cursor that stands as `id:` on a numbered frame."""
        is_phase = frame.get("name") == "spawn.progress"
        agent_seq, spawner_seq = (
            (len(self.log), frame["seq"]) if is_phase else (frame["seq"], len(self.phases))
        )
        return f"{self.epoch}.{agent_seq}.{spawner_seq}"

    async def listen(self, cursor: str | None) -> AsyncIterator[Frame | None]:
        """Frames from a cursor on; `None` closes the stream. First the states, as the gateway sends them."""
        queue: asyncio.Queue[Frame | None] = asyncio.Queue()
        epoch, agent_seq, spawner_seq = cursor.split(".") if cursor else ("", "0", "0")
        for frame in self.phases[int(spawner_seq) :]:
            queue.put_nowait(frame)
        queue.put_nowait(self.instance())
        if self.is_counted:
            queue.put_nowait(self.quota())
        queue.put_nowait({"type": "CUSTOM", "name": "pending", "messages": self.pending})
        if self.state == "ready":
            known = epoch == self.epoch
            if not known:
                queue.put_nowait(self.reset())
            for frame in self.log[int(agent_seq) :] if known else []:
                queue.put_nowait(frame)
        self.listeners.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self.listeners.discard(queue)

    def reset(self) -> Frame:
        """What a stranger's cursor gets first."""
        return {"type": "CUSTOM", "name": "log.reset", "epoch": self.epoch, "seq": len(self.log)}

    def instance(self) -> Frame:
        """The instance's state as it is now."""
        return frames.instance(self.state, self.generation)

    def quota(self) -> Frame:
        """The quota's state as it is now."""
        return frames.quota(self.percent)

    def cut(self) -> None:
        """Ends every open stream, as a proxy does that loses patience."""
        for queue in self.listeners:
            queue.put_nowait(None)

    def close(self) -> None:
        """Forgets what is under way and ends every stream."""
        for task in self.tasks:
            task.cancel()
        self.cut()

    def do(self, work: Callable[[], Any]) -> None:
        """Runs a coroutine beside the requests and keeps hold of it."""
        task = asyncio.create_task(work())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def wake(self, *, fails: bool = False, slow: float = 1.0) -> None:
        """Goes through the spawner's phases, the last when `may_wake` is set; then delivers what waited."""
        if self.state in ("creating", "starting", "ready"):
            return
        self.generation += 1
        for phase, state, seconds in PHASES:
            if fails and phase == "start":
                phase, state = "failed", "failed"
            if state == "ready":
                await self.may_wake.wait()
            self.state = state if state != "absent" else "creating"
            frame = frames.phase(len(self.phases) + 1, phase, self.state, self.generation)
            self.phases.append(frame)
            self.tell(frame)
            if phase == "failed":
                self.pending = [
                    p | {"state": "failed", "error": frame["error"]} for p in self.pending
                ]
                self.tell({"type": "CUSTOM", "name": "pending", "messages": self.pending})
                return
            await asyncio.sleep(seconds * slow)
        self.tell(self.instance())
        self.tell(self.reset())
        waiting, self.pending = self.pending, []
        for message in waiting:
            self.post(message["conversation_id"], message["client_message_id"], message["text"])
        self.tell({"type": "CUSTOM", "name": "pending", "messages": []})

    def post(self, conversation: str, client_id: str, text: str) -> Frame:
        """Takes a message and answers it in the background; the same id again is the same turn."""
        if client_id in self.accepted:
            return self.accepted[client_id]
        at, turn = now_ms(), ulid()
        if conversation not in self.conversations:
            self.conversations[conversation] = frames.conversation(conversation, None, at, "queued")
        message = frames.message("user", conversation, turn, text, at, client_message_id=client_id)
        self.messages.setdefault(conversation, []).append(message)
        answer = {
            "turn_id": turn,
            "message_id": message["id"],
            "conversation_id": conversation,
            "state": "queued",
        }
        self.accepted[client_id] = answer
        self.do(lambda: self.answer(conversation, turn, message))
        return answer

    async def answer(self, conversation: str, turn: str, message: Frame) -> None:
        """Streams one scripted answer, word by word."""
        script = words.script_for(message["text"])
        answer = frames.message("assistant", conversation, turn, "", now_ms(), state="streaming")
        self.messages[conversation].append(answer)
        self.append(
            "RUN_STARTED",
            conversation,
            turn,
            message=dict(message),
            assistant_message_id=answer["id"],
        )
        await asyncio.sleep(script.think_s)
        for tool in script.tools:
            await self._use(conversation, turn, answer, tool)
        self.append("TEXT_MESSAGE_START", conversation, turn, message_id=answer["id"])
        for piece in script.pieces():
            if turn in self.stopped:
                break
            offset = len(answer["text"])
            answer["text"] += piece
            self.append(
                "TEXT_MESSAGE_CONTENT",
                conversation,
                turn,
                message_id=answer["id"],
                delta=piece,
                offset=offset,
            )
            await asyncio.sleep(self.pace_s)
        self._end(conversation, turn, answer, script)

    async def _use(self, conversation: str, turn: str, answer: Frame, tool: Frame) -> None:
        call = {
            "id": ulid(),
            **tool,
            "state": "running",
            "result_preview": None,
            "started_at": now_ms(),
            "ended_at": None,
            "text_offset": len(answer["text"]),
        }
        answer["tools"].append(call)
        self.append("TOOL_CALL_START", conversation, turn, tool_call=dict(call))
        await asyncio.sleep(20 * self.pace_s)
        call |= {
            "state": tool.get("ends", "done"),
            "result_preview": tool["finds"],
            "ended_at": now_ms(),
        }
        self.append("TOOL_CALL_END", conversation, turn, tool_call=dict(call))

    def _end(self, conversation: str, turn: str, answer: Frame, script: words.Script) -> None:
        if script.error and turn not in self.stopped:
            answer |= {"state": "failed", "error": script.error}
            self.append(
                "RUN_ERROR",
                conversation,
                turn,
                code=script.error["code"],
                message_text=script.error["message"],
                retryable=True,
                details=script.error["details"],
                message=dict(answer),
            )
        else:
            answer["state"] = "stopped" if turn in self.stopped else "complete"
            self.append("TEXT_MESSAGE_END", conversation, turn, message_id=answer["id"])
            self.append(
                "RUN_FINISHED", conversation, turn, outcome=answer["state"], message=dict(answer)
            )
        known = self.conversations.get(conversation)
        if known is None:
            return
        known |= {
            "title": known["title"] or words.title_of(self.messages[conversation][0]["text"]),
            "updated_at": now_ms(),
            "last_turn_state": answer["state"],
        }
        self.append(
            "CUSTOM", conversation, turn, name="conversation.updated", conversation=dict(known)
        )

    def snapshot(self, conversation: str, before: str | None, limit: int) -> Frame | None:
        """The contracts' page of messages, consistent as of `seq`; None when there is no such conversation."""
        if conversation not in self.conversations:
            return None
        rows = self.messages[conversation]
        end = next((n for n, row in enumerate(rows) if row["id"] == before), len(rows))
        start = max(0, end - limit)
        return {
            "conversation": dict(self.conversations[conversation]),
            "messages": [dict(row) for row in rows[start:end]],
            "epoch": self.epoch,
            "seq": len(self.log),
            "has_more": start > 0,
        }

    def remember(self, title: str, turns: list[tuple[str, str]], days_ago: int) -> str:
        """Puts a finished conversation into the past; its first answer used a tool."""
        conversation, at = ulid(), now_ms() - days_ago * 86_400_000
        self.conversations[conversation] = frames.conversation(conversation, title, at, "complete")
        rows = self.messages.setdefault(conversation, [])
        for step, (asked, answered) in enumerate(turns):
            turn, then = ulid(), at + step * 60_000
            rows.append(frames.message("user", conversation, turn, asked, then))
            rows.append(frames.message("assistant", conversation, turn, answered, then))
        used = {
            "id": ulid(),
            **words.SEARCH,
            "state": "done",
            "result_preview": words.SEARCH["finds"],
        }
        rows[1]["tools"] = [used | {"started_at": at, "ended_at": at + 340, "text_offset": 0}]
        return conversation
