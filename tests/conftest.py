"""Fixtures that every room may use. What is missing on this machine is said in one line, never passed over
in silence: a skip by default, a failure with ALCOVE_REQUIRE_ALL=1."""

from collections.abc import AsyncIterator

import pytest

from infra.kit.clock import FakeClock
from tests.scripted import ScriptedProvider, serve


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedProvider]:
    """A model provider on loopback that follows the test's script; see tests/scripted/README.md."""
    async with serve(ScriptedProvider()) as provider:
        yield provider
    provider.verify()


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()
