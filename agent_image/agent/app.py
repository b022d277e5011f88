"""Wiring: every part of an agent, put together once, and its HTTP surface as one ASGI application."""

import asyncio
import logging
import traceback
from collections.abc import Iterable

from agent import memory
from agent.api.conversations import Conversations
from agent.api.events import Events
from agent.api.memory import Memory
from agent.api.messages import Messages
from agent.api.status import Status
from agent.api.turns import Turns as TurnsApi
from agent.asgi import (
    ClientGone,
    Handler,
    Receive,
    Request,
    Response,
    Routes,
    Scope,
    Send,
    request_of,
    respond,
)
from agent.context import Context
from agent.events import Log
from agent.faults import Faults
from agent.loop import Loop
from agent.providers.asking import Asking, Pause
from agent.providers.http import Client
from agent.providers.models import Models
from agent.settings import Settings
from agent.spans import Spans, Trace
from agent.store import turns
from agent.store.database import Database
from agent.tools.builtin import BUILTIN
from agent.tools.registry import Registry, Tool
from agent.transcript import Turn
from agent.turns import Turns
from infra.kit import ids
from infra.kit.clock import Clock, SystemClock
from infra.kit.errors import AlcoveError
from infra.kit.log import bound

log = logging.getLogger(__name__)

_HISTORY_EXCHANGES = 60


class App:
    """One agent. `start` before the first request, `stop` after the last."""

    def __init__(
        self, settings: Settings, clock: Clock, tools: Iterable[Tool], pause: Pause
    ) -> None:
        self._secret = settings.secret_file.read_text().strip()
        self._clock = clock
        self.db = Database(settings.data_dir / "agent.db", clock)
        self.log = Log(self.db)
        faults, spans = Faults(settings.fault), Spans()
        client = Client(settings.meter)
        self.asking = Asking(client, Models(client, settings.key_file), pause)
        self.tools = Registry(tools, self.db, clock)
        self.turns = Turns(
            self.db, Loop(self.asking, self.tools, self._prepare, faults), self.tools, spans
        )
        self._open, self._guarded = self._routes(settings, spans, faults)

    async def start(self) -> None:
        """Opens the database and takes up what a former process left."""
        self.db.open()
        await self.log.start()
        await self.turns.recover()

    async def stop(self, drain_s: float = 3.5) -> None:
        """Takes no new turn, lets running ones end for `drain_s`, ends the streams, closes the database."""
        await self.turns.drain(drain_s)
        await self.log.close(timeout_s=0.5)
        await self.db.close()

    async def _prepare(self, turn: Turn, trace: Trace) -> Context:
        """What the model is to know for this turn. Raises ModelError where there is no model."""
        model = await self.asking.model(trace.headers())
        recalled, history = await self.db.read(
            lambda tx: (
                memory.recall(tx, turn),
                turns.exchanges(tx, turn.conversation_id, turn.ordinal, _HISTORY_EXCHANGES),
            )
        )
        return Context(model, self._clock.now_at(), recalled, history, self.tools.specs())

    def _routes(self, settings: Settings, spans: Spans, faults: Faults) -> tuple[Routes, Routes]:
        conversations = Conversations(self.db, self.turns)
        messages = Messages(self.db, self.turns, faults)
        turns_api = TurnsApi(self.db, self.turns)
        facts = Memory(self.db)
        status = Status(self.db, spans, settings.generation)
        guarded: dict[tuple[str, str], Handler] = {
            ("GET", "/status"): status.show,
            ("GET", "/spans"): status.finished_spans,
            ("GET", "/api/conversations"): conversations.index,
            ("PUT", "/api/conversations/{id}"): conversations.put,
            ("DELETE", "/api/conversations/{id}"): conversations.delete,
            ("GET", "/api/conversations/{id}/messages"): messages.index,
            ("POST", "/api/conversations/{id}/messages"): messages.create,
            ("PUT", "/api/turns/{id}/cancellation"): turns_api.cancel,
            ("POST", "/api/turns/{id}/retries"): turns_api.retry,
            ("GET", "/api/memory"): facts.index,
            ("DELETE", "/api/memory/{id}"): facts.delete,
            ("GET", "/api/events"): Events(self.db, self.log).stream,
        }
        return Routes({("GET", "/healthz"): status.health}), Routes(guarded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request. Everything but /healthz asks for the instance's secret."""
        assert scope["type"] == "http"
        request = request_of(scope, receive)
        with bound(request_id=request.request_id):
            try:
                response = await self._handler(request)(request)
            except ClientGone:
                return
            except AlcoveError as error:
                response = Response(error.status, error.body(request.request_id))
            except Exception as error:
                response = _internal(error, request)
            await respond(receive, send, response)

    def _handler(self, request: Request) -> Handler:
        if request.path == "/healthz":
            return self._open.find(request)
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not ids.same(secret.strip(), self._secret):
            raise AlcoveError("unauthorized", "The instance's secret is missing or wrong.")
        return self._guarded.find(request)


def _internal(error: Exception, request: Request) -> Response:
    """An error that nobody foresaw: its kind and place to the log, never its text, which may be a person's."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    log.error(
        "a request failed",
        extra={
            "error": type(error).__name__,
            "where": f"{at.filename}:{at.lineno}",
            "method": request.method,
        },
    )
    coded = AlcoveError("internal", "Something went wrong inside the assistant.")
    return Response(coded.status, coded.body(request.request_id))


def create_app(
    settings: Settings,
    clock: Clock | None = None,
    tools: Iterable[Tool] = BUILTIN,
    pause: Pause = asyncio.sleep,
) -> App:
    """An agent with everything in place and nothing opened yet. `pause` waits before another try."""
    return App(settings, clock or SystemClock(), tools, pause)
