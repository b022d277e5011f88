"""An agent that keeps its contract (docs/contracts.md, Agent), in memory, on a real unix socket.

It answers each message with `You said: …`, word by word; `say` adds any event, `cut` breaks every
stream, `held` leaves turns open after their first word, as a slow model does.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.responses import JSONResponse, StreamingResponse

from infra.kit import ids, service, sse
from infra.kit.errors import AlcoveError
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing


class FakeAgent:
    """One generation of one tenant's agent; `log`, conversations and epoch live in `memory`."""

    def __init__(self, secret: str, memory: "Memory") -> None:
        self.secret, self.memory = secret, memory
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.cuts = 0
        self.app = _app(self)

    def cut(self) -> None:
        """Breaks every stream that is open now."""
        self.cuts += 1
        self.memory.changed()


class Memory:
    """What survives a restart of the agent: its database."""

    def __init__(self) -> None:
        self.epoch = ids.ulid()
        self.log: list[dict[str, Any]] = []
        self.conversations: dict[str, list[dict[str, Any]]] = {}
        self.by_client_id: dict[str, dict[str, Any]] = {}
        self.held = False
        self._waiters: set[asyncio.Event] = set()

    @property
    def seq(self) -> int:
        """Number of the newest event."""
        return len(self.log)

    def say(self, kind: str, **fields: Any) -> int:
        """Appends an event; streams send it."""
        event = {"type": kind, "seq": self.seq + 1, "at": 1, "conversation_id": "c", "turn_id": "t"}
        self.log.append({**event, **fields})
        self.changed()
        return self.seq

    def changed(self) -> None:
        """Wakes the streams."""
        for waiter in self._waiters:
            waiter.set()

    def restore(self) -> None:
        """As after an import: another log."""
        self.epoch, self.log = ids.ulid(), []
        self.changed()

    def take(self, conversation: str, body: dict[str, Any]) -> Response:
        """`POST …/messages`."""
        client_id, text = body["client_message_id"], body["text"]
        known = self.by_client_id.get(client_id)
        if known is not None:
            if known["text"] != text:
                raise AlcoveError("conflict", "this id belongs to another text", reason="reused")
            return JSONResponse(known["answer"], 202)
        answer = {
            "turn_id": ids.ulid(),
            "message_id": ids.ulid(),
            "conversation_id": conversation,
            "state": "queued",
        }
        self.by_client_id[client_id] = {"text": text, "answer": answer}
        messages = self.conversations.setdefault(conversation, [])
        messages.append({"id": answer["message_id"], "role": "user", "text": text})
        self._turn(conversation, answer["turn_id"], text)
        return JSONResponse(answer, 202)

    def _turn(self, conversation: str, turn: str, text: str) -> None:
        common = {"conversation_id": conversation, "turn_id": turn}
        reply = ids.ulid()
        self.say("RUN_STARTED", assistant_message_id=reply, **common)
        self.say("TEXT_MESSAGE_START", message_id=reply, **common)
        offset = 0
        for word in f"You said: {text}".split(" "):
            self.say(
                "TEXT_MESSAGE_CONTENT", message_id=reply, delta=word + " ", offset=offset, **common
            )
            offset += len(word) + 1
            if self.held:
                return
        self.say("TEXT_MESSAGE_END", message_id=reply, **common)
        self.say("RUN_FINISHED", outcome="complete", **common)

    async def follow(self, agent: FakeAgent, epoch: str | None, after: int) -> AsyncIterator[bytes]:
        """`GET /api/events`."""
        waiter, cuts = asyncio.Event(), agent.cuts
        self._waiters.add(waiter)
        yield b": hello\n\n"
        try:
            if epoch != self.epoch:
                after = self.seq
                reset = {"type": "CUSTOM", "name": "log.reset", "epoch": self.epoch, "seq": after}
                yield _frame(after, reset)
            while agent.cuts == cuts:
                waiter.clear()
                while after < self.seq:
                    after += 1
                    yield _frame(after, self.log[after - 1])
                await waiter.wait()
        finally:
            self._waiters.discard(waiter)


def _frame(seq: int, event: dict[str, Any]) -> bytes:
    return sse.frame(orjson.dumps(event).decode(), event_id=str(seq))


def _app(agent: FakeAgent) -> FastAPI:
    app = FastAPI(openapi_url=None)
    service.install(app, metrics=Metrics("agent"), tracing=Tracing("agent"))
    memory = agent.memory

    async def allowed(request: Request) -> None:
        headers = dict(request.headers)
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        agent.requests.append((request.method, target, headers, await request.body()))
        if headers.get("authorization") != f"Bearer {agent.secret}":
            raise AlcoveError("unauthorized", "not my gateway")

    @app.get("/api/events")
    async def events(request: Request, epoch: str | None = None, after: int = 0) -> Response:
        await allowed(request)
        body = memory.follow(agent, epoch, after)
        return StreamingResponse(body, media_type="text/event-stream")

    @app.get("/api/conversations")
    async def conversations(request: Request) -> Any:
        await allowed(request)
        listed = [{"id": each, "title": each} for each in memory.conversations]
        return {"conversations": listed, "next": None}

    @app.put("/api/conversations/{conversation}")
    async def put(request: Request, conversation: str) -> Response:
        await allowed(request)
        created = conversation not in memory.conversations
        memory.conversations.setdefault(conversation, [])
        return JSONResponse({"id": conversation}, 201 if created else 200)

    @app.delete("/api/conversations/{conversation}")
    async def delete(request: Request, conversation: str) -> Response:
        await allowed(request)
        if memory.conversations.pop(conversation, None) is None:
            raise AlcoveError("not_found", "no such conversation")
        return Response(status_code=204)

    @app.get("/api/conversations/{conversation}/messages")
    async def messages(request: Request, conversation: str) -> Any:
        await allowed(request)
        if conversation not in memory.conversations:
            raise AlcoveError("not_found", "no such conversation")
        found = memory.conversations[conversation]
        return {"messages": found, "epoch": memory.epoch, "seq": memory.seq, "has_more": False}

    @app.post("/api/conversations/{conversation}/messages")
    async def post(request: Request, conversation: str) -> Response:
        await allowed(request)
        return memory.take(conversation, await request.json())

    @app.put("/api/turns/{turn}/cancellation")
    async def cancel(request: Request, turn: str) -> Response:
        await allowed(request)
        if not any(event["turn_id"] == turn for event in memory.log):
            raise AlcoveError("not_found", "no such turn")
        return JSONResponse({"state": "stopped"}, 202)

    @app.post("/api/turns/{turn}/retries")
    async def retry(request: Request, turn: str) -> Response:
        await allowed(request)
        if not any(event["turn_id"] == turn for event in memory.log):
            raise AlcoveError("not_found", "no such turn")
        return JSONResponse({"turn_id": ids.ulid()}, 202)

    @app.get("/api/memory")
    async def facts(request: Request) -> Any:
        await allowed(request)
        return {"facts": []}

    @app.delete("/api/memory/{fact}")
    async def forget(request: Request, fact: str) -> Response:
        await allowed(request)
        raise AlcoveError("not_found", "no such fact")

    return app
