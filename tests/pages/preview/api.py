"""The gateway's API over the scripted assistant: what the chat page's scripts ask."""

import asyncio
import json
from typing import Any

from aiohttp import web

from tests.pages.preview import samples
from tests.pages.preview.assistant import Assistant
from tests.pages.preview.frames import now_ms

ASSISTANT = web.AppKey("assistant", Assistant)
SCENE = web.AppKey("scene", dict[str, Any])
HEARTBEAT_S = 15


def refusal(status: int, code: str, message: str, **details: Any) -> web.Response:
    """An error as docs/contracts.md shapes it."""
    return web.json_response(
        {"error": {"code": code, "message": message, "details": details, "request_id": "preview"}},
        status=status,
    )


async def stream(request: web.Request) -> web.StreamResponse:
    """The one EventSource of a tab."""
    assistant = request.app[ASSISTANT]
    response = web.StreamResponse(
        headers={"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}
    )
    await response.prepare(request)
    await response.write(b": here\nretry: 1000\n\n")
    frames = assistant.listen(request.headers.get("Last-Event-ID") or request.query.get("cursor"))
    waiting: asyncio.Future[Any] = asyncio.ensure_future(anext(frames))
    try:
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=HEARTBEAT_S)
            frame = (
                {"type": "CUSTOM", "name": "heartbeat", "at": now_ms()}
                if not done
                else waiting.result()
            )
            if frame is None:
                return response
            if done:
                waiting = asyncio.ensure_future(anext(frames))
            numbered = f"id: {assistant.cursor_of(frame)}\n" if "seq" in frame else ""
            await response.write(f"{numbered}data: {json.dumps(frame)}\n\n".encode())
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await frames.aclose()


async def wake(request: web.Request) -> web.Response:
    """Starts the phases, unless they run already."""
    assistant, scene = request.app[ASSISTANT], request.app[SCENE]["name"]
    assistant.do(lambda: assistant.wake(fails=scene == "stuck", slow=request.app[SCENE]["slow"]))
    return web.json_response(
        {"state": assistant.state, "generation": assistant.generation}, status=202
    )


async def list_conversations(request: web.Request) -> web.Response:
    """Newest first; `q` searches titles and text."""
    assistant = request.app[ASSISTANT]
    if assistant.state != "ready":
        return refusal(503, "unavailable", "The assistant is not awake.", reason="agent_asleep")
    query = request.query.get("q", "").lower()
    rows = [
        c
        for c in assistant.conversations.values()
        if query in (c["title"] or "").lower()
        or any(query in m["text"].lower() for m in assistant.messages[c["id"]])
    ]
    return web.json_response(
        {"conversations": sorted(rows, key=lambda c: -c["updated_at"]), "next": None}
    )


async def change_conversation(request: web.Request) -> web.Response:
    """Renames or deletes."""
    assistant, key = request.app[ASSISTANT], request.match_info["id"]
    if key not in assistant.conversations:
        return refusal(404, "not_found", "There is no such conversation.")
    if request.method == "DELETE":
        del assistant.conversations[key]
        assistant.append("CUSTOM", key, None, name="conversation.deleted")
        return web.Response(status=204)
    assistant.conversations[key]["title"] = (await request.json())["title"]
    assistant.append(
        "CUSTOM",
        key,
        None,
        name="conversation.updated",
        conversation=dict(assistant.conversations[key]),
    )
    return web.json_response(assistant.conversations[key])


async def messages(request: web.Request) -> web.Response:
    """A snapshot, or a new message."""
    assistant, key = request.app[ASSISTANT], request.match_info["id"]
    if request.method == "GET":
        if assistant.state != "ready":
            return refusal(503, "unavailable", "The assistant is not awake.", reason="agent_asleep")
        found = assistant.snapshot(
            key, request.query.get("before"), int(request.query.get("limit", "50"))
        )
        return (
            web.json_response(found)
            if found
            else refusal(404, "not_found", "There is no such conversation.")
        )
    body = await request.json()
    refused = request.app[SCENE].get("refuse")
    if refused:
        return refusal(*refused)
    if assistant.state == "ready":
        return web.json_response(
            assistant.post(key, body["client_message_id"], body["text"]), status=202
        )
    waiting = {
        "client_message_id": body["client_message_id"],
        "conversation_id": key,
        "text": body["text"],
        "created_at": now_ms(),
        "state": "waiting",
        "error": None,
    }
    assistant.pending.append(waiting)
    assistant.tell({"type": "CUSTOM", "name": "pending", "messages": assistant.pending})
    await wake(request)
    return web.json_response(
        {"state": "waiting", "client_message_id": body["client_message_id"]}, status=202
    )


async def turn(request: web.Request) -> web.Response:
    """Stops a turn, or answers it again."""
    assistant, key = request.app[ASSISTANT], request.match_info["id"]
    if request.method == "PUT":
        assistant.stopped.add(key)
        return web.json_response({}, status=202)
    asked = next(
        m
        for rows in assistant.messages.values()
        for m in rows
        if m["turn_id"] == key and m["role"] == "user"
    )
    return web.json_response(
        assistant.post(
            asked["conversation_id"], (await request.json())["client_message_id"], asked["text"]
        ),
        status=202,
    )


async def pending(request: web.Request) -> web.Response:
    """Lists, discards, or tries again what waits."""
    assistant, key = request.app[ASSISTANT], request.match_info.get("id")
    if request.method == "DELETE":
        assistant.pending = [p for p in assistant.pending if p["client_message_id"] != key]
        assistant.tell({"type": "CUSTOM", "name": "pending", "messages": assistant.pending})
        return web.Response(status=204)
    if request.method == "POST":
        assistant.pending = [p | {"state": "waiting", "error": None} for p in assistant.pending]
        assistant.tell({"type": "CUSTOM", "name": "pending", "messages": assistant.pending})
        return await wake(request)
    return web.json_response({"messages": assistant.pending})


async def session(request: web.Request) -> web.Response:
    """Who is signed in."""
    return web.json_response({"email": samples.ADMIN["email"], "is_admin": True, "csrf": "preview"})


ROUTES = (
    web.get("/api/stream", stream),
    web.post("/api/wake", wake),
    web.get("/api/session", session),
    web.get("/api/conversations", list_conversations),
    web.put("/api/conversations/{id}", change_conversation),
    web.delete("/api/conversations/{id}", change_conversation),
    web.get("/api/conversations/{id}/messages", messages),
    web.post("/api/conversations/{id}/messages", messages),
    web.put("/api/turns/{id}/cancellation", turn),
    web.post("/api/turns/{id}/retries", turn),
    web.get("/api/pending-messages", pending),
    web.delete("/api/pending-messages/{id}", pending),
    web.post("/api/pending-messages/{id}/retries", pending),
)
