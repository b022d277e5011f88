"""Answers that are sent before any route: plain coded JSON."""

import orjson
from starlette.types import Scope, Send

from infra.kit.errors import AlcoveError


async def send_refusal(scope: Scope, send: Send, error: AlcoveError) -> None:
    """Sends `error`, and closes the connection of what may not be HTTP as we read it.

    A body that is only too large is dropped as it comes: who still sends would miss the answer.
    """
    request_id = scope.get("alcove_request_id")
    body = orjson.dumps(error.body(request_id if isinstance(request_id, str) else None))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if error.code != "too_large":
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
