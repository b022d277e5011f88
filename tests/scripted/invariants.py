"""What must hold of every request that an agent sends to a model, whatever the conversation.

Facts: a strict API refuses a call without its result, a result without its call, and text that is
not Unicode; one such message in a history poisons every later turn.
"""

import itertools
import json
from typing import Any

from tests.scripted.request import Request, blocks


def check(request: Request, *, secrets: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with `request`; `secrets` are canaries that must not leave."""
    problems = [*_pairs(request), *_roles(request), *_text(request.body)]
    problems += [
        f"it carries a secret ({canary[:6]}…)"
        for canary in secrets
        if canary.encode() in request.body
    ]
    return problems


def _called(message: dict[str, Any]) -> list[str]:
    found = [str(c.get("id")) for c in message.get("tool_calls") or []]
    return found + [str(b.get("id")) for b in blocks(message) if b.get("type") == "tool_use"]


def _answered(message: dict[str, Any]) -> list[str]:
    if message.get("role") == "tool":
        return [str(message.get("tool_call_id"))]
    return [str(b["tool_use_id"]) for b in blocks(message) if b.get("type") == "tool_result"]


def _pairs(request: Request) -> list[str]:
    problems: list[str] = []
    open_ids: list[str] = []
    for message in request.messages:
        answered = _answered(message)
        for identity in answered:
            if identity in open_ids:
                open_ids.remove(identity)
            else:
                problems.append(f"result {identity} has no call just before it")
        if open_ids and not answered:
            problems.append(f"calls {open_ids} have no result before the next message")
            open_ids = []
        open_ids += _called(message)
    return problems + ([f"calls {open_ids} are never answered"] if open_ids else [])


def _roles(request: Request) -> list[str]:
    spoken = [m for m in request.messages if m.get("role") not in ("system", "developer")]
    problems = []
    if request.wire == "anthropic" and any(m.get("role") == "system" for m in request.messages):
        problems.append("a system message stands among Anthropic's messages")
    if spoken and spoken[0].get("role") != "user":
        problems.append(f"the first message is of {spoken[0].get('role')!r}")
    for before, after in itertools.pairwise(spoken):
        if before.get("role") == "assistant" and after.get("role") == "assistant":
            problems.append("two messages of the assistant follow each other")
    return problems


def _text(body: bytes) -> list[str]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return ["it is not UTF-8"]
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text) or _escaped_lone_surrogate(text):
        return ["it holds half of a surrogate pair"]
    return []


def _escaped_lone_surrogate(text: str) -> bool:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:
        return False
    return False
