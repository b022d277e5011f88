"""An agent on a real socket in front of a scripted meter; and one in a process of its own, to be killed."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.app import App, create_app
from agent.serve import listening
from agent.settings import Settings
from agent.tools.builtin import BUILTIN
from agent.tools.registry import Tool
from infra.kit import address, unix
from infra.kit.clock import Clock, SystemClock
from tests.agent.meter import ScriptedMeter
from tests.agent.person import SECRET, Person
from tests.scripted import serve


class Home:
    """The files of one instance, as the spawner lays them out."""

    def __init__(self, root: Path) -> None:
        self.agent, self.meter, self.data = root / "agent", root / "meter", root / "data"
        for directory in (self.agent, self.meter, self.data):
            directory.mkdir()
        (self.meter / "key").write_text("ak-test-key\n")
        (self.meter / "instance_secret").write_text(SECRET)

    def settings(self) -> Settings:
        """Settings for an agent in this process."""
        return Settings(
            socket=self.agent / "agent.sock",
            meter=address.parse(f"unix://{self.meter}/meter.sock"),
            key_file=self.meter / "key",
            secret_file=self.meter / "instance_secret",
            data_dir=self.data,
            tenant="abcdefghijklmnop",
            generation=3,
        )

    def environment(self) -> dict[str, str]:
        """The same for `python -m agent`."""
        return {
            "ALCOVE_AGENT_SOCKET": str(self.agent / "agent.sock"),
            "ALCOVE_AGENT_METER_URL": f"unix://{self.meter}/meter.sock",
            "ALCOVE_AGENT_KEY_FILE": str(self.meter / "key"),
            "ALCOVE_AGENT_SECRET_FILE": str(self.meter / "instance_secret"),
            "ALCOVE_AGENT_DATA_DIR": str(self.data),
            "ALCOVE_AGENT_TENANT": "abcdefghijklmnop",
            "ALCOVE_AGENT_GENERATION": "3",
        }


@asynccontextmanager
async def serving(app: App, socket: Path) -> AsyncIterator[None]:
    """Serves an agent at its socket, as `python -m agent` does."""
    await app.start()
    async with listening(app, unix.bind(socket)):
        try:
            yield
        finally:
            await app.stop(drain_s=0)


@pytest.fixture
def home() -> Iterator[Home]:
    """An instance's directories, at a path short enough for any client."""
    with tempfile.TemporaryDirectory(prefix="agent-") as root:
        yield Home(Path(root))


@pytest.fixture
async def meter(home: Home) -> AsyncIterator[ScriptedMeter]:
    """The scripted meter at the instance's meter socket; fails the test when the script was not followed."""
    provider = ScriptedMeter()
    async with serve(provider, socket_path=home.meter / "meter.sock"):
        yield provider
    provider.verify()


@pytest.fixture
def tools() -> tuple[Tool, ...]:
    """The tools of `app`; a test module may have its own."""
    return BUILTIN


@pytest.fixture
def agent_clock() -> Clock:
    """The clock of `app`; a test module may have its own."""
    return SystemClock()


async def _no_pause(seconds: float) -> None:
    """No test waits for a back-off; how long it would be is `errors.pause_s`'s affair."""
    assert 0 < seconds < 30


@pytest.fixture
async def app(
    home: Home, meter: ScriptedMeter, tools: tuple[Tool, ...], agent_clock: Clock
) -> AsyncIterator[App]:
    """A running agent."""
    agent = create_app(home.settings(), agent_clock, tools, pause=_no_pause)
    async with serving(agent, home.agent / "agent.sock"):
        yield agent


@pytest.fixture
def person(app: App, home: Home) -> Person:
    """Somebody who talks to `app`."""
    return Person(home.agent / "agent.sock")
