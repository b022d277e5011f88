"""Answers that are sent before any route: plain coded JSON."""

import orjson
from starlette.types import Scope, Send

from infra.kit.errors import AlcoveError


async def send_refusal(scope: Scope, send: Send, error: AlcoveError) -> None:
    """Sends `error` and closes the connection, since its request may not have been read."""
    request_id = scope.get("alcove_request_id")
    body = orjson.dumps(error.body(request_id if isinstance(request_id, str) else None))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
