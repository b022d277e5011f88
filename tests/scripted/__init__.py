"""A model provider that follows a script: the tests' instrument for agent and meter alike.

What is here answers real HTTP on loopback, in both wires, well or badly on purpose. What it says is
decided by the test, step by step. README.md has an example. Nothing here is used outside of tests.
"""

from tests.scripted.invariants import check as check_invariants
from tests.scripted.provider import ScriptedProvider, serve
from tests.scripted.reply import (
    Call,
    Delay,
    Gate,
    Reply,
    StreamError,
    Usage,
    call,
    calls,
    error,
    recorded,
    refusal,
    text,
)
from tests.scripted.request import Request
from tests.scripted.script import (
    Expectation,
    anything,
    has_result,
    has_tool,
    has_tools,
    last_contains,
    model_is,
    no_tools,
    on_wire,
    that,
)

__all__ = [
    "Call",
    "Delay",
    "Expectation",
    "Gate",
    "Reply",
    "Request",
    "ScriptedProvider",
    "StreamError",
    "Usage",
    "anything",
    "call",
    "calls",
    "check_invariants",
    "error",
    "has_result",
    "has_tool",
    "has_tools",
    "last_contains",
    "model_is",
    "no_tools",
    "on_wire",
    "recorded",
    "refusal",
    "serve",
    "text",
    "that",
]
