"""/api/events: the log as server-sent events, from where the reader left off."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import orjson

from agent.asgi import Request, Response
from agent.events import Log
from agent.store import events
from agent.store.database import Database
from infra.kit import sse

HEARTBEAT_S = 15.0


@dataclass(frozen=True, slots=True)
class Events:
    """The handler."""

    db: Database
    log: Log

    async def stream(self, request: Request) -> Response:
        """GET ?epoch=&after=: everything behind `after`, then everything that comes.

        A reader with another epoch, or from before what is kept, is told to read anew (`log.reset`).
        """
        after = request.whole("after", 0, 0, 1 << 60)
        known = await self.log.can_follow(request.query.get("epoch", ""), after)
        return Response(
            stream=self._frames(after if known else None),
            headers={"content-type": sse.CONTENT_TYPE, **sse.HEADERS},
        )

    async def _frames(self, after: int | None) -> AsyncGenerator[bytes, None]:
        yield b": the log of this assistant\n\n"
        if after is None:
            epoch, after = await self.log.position()
            reset = {"type": "CUSTOM", "name": "log.reset", "epoch": epoch, "seq": after}
            yield sse.frame(orjson.dumps(reset).decode(), event_id=str(after))
        async for found in self.log.follow(after, HEARTBEAT_S):
            if not found:
                yield sse.HEARTBEAT
                continue
            yield b"".join(sse.frame(data, event_id=str(seq)) for seq, data in found)
            if any(_is_end(data) for _, data in found):
                await self._note_seen(found[-1][0])

    async def _note_seen(self, seq: int) -> None:
        await self.db.write(lambda tx: events.seen(tx, seq))


def _is_end(data: str) -> bool:
    return '"type":"RUN_FINISHED"' in data or '"type":"RUN_ERROR"' in data
