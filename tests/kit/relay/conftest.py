"""Every test of this room runs on both event loops; the conformance suite over both implementations too."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from infra.kit.relay import ProtocolUpstream
from tests.kit.relay.over_aiohttp import HttpUpstream


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops a test runs on: Python's own, and the one that services use."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=[HttpUpstream, ProtocolUpstream])
def kind(request: pytest.FixtureRequest) -> type[HttpUpstream] | type[ProtocolUpstream]:
    """An implementation of the seam."""
    chosen: type[HttpUpstream] | type[ProtocolUpstream] = request.param
    return chosen
