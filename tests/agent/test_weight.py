"""What an idle agent costs: no heavy module, at most 40 MB, an answer in 0.3 s from its start."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.agent.conftest import Home
from tests.agent.meter import ScriptedMeter
from tests.agent.process import running
from tests.waiting import until

HEAVY = (
    "pydantic", "sqlalchemy", "fastapi", "starlette", "aiohttp", "httpx", "jinja2", "docker", "cryptography",
    "prometheus_client", "opentelemetry", "uvloop", "httptools", "websockets",
    "gateway", "spawner", "metering_proxy",
)  # fmt: skip
RSS_MAX_KB = 40 * 1024
ROOT = Path(__file__).parents[2]


def test_no_heavy_module_is_loaded_when_everything_is_imported() -> None:
    code = (
        "import sys, pkgutil, importlib, agent\n"
        "for found in pkgutil.walk_packages(agent.__path__, 'agent.'):\n"
        "    importlib.import_module(found.name)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'agent_image'}"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    loaded = set(run.stdout.split())
    assert "agent" in loaded
    assert loaded & set(HEAVY) == set()


async def test_idle_agent_is_small_and_soon_there(home: Home, meter: ScriptedMeter) -> None:
    """The start is measured by the processor time it takes, since other tests may share the machine."""
    async with running(home) as agent:
        status = Path(f"/proc/{agent.child.pid}/status").read_text()
        rss_kb = int(
            next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        )
        stat = Path(f"/proc/{agent.child.pid}/stat").read_text().rpartition(") ")[2].split()
        ticks = int(stat[11]) + int(stat[12])
        assert rss_kb <= RSS_MAX_KB, f"{rss_kb} KB"
        assert ticks / os.sysconf("SC_CLK_TCK") <= 0.6


async def test_idle_agent_uses_no_processor(home: Home, meter: ScriptedMeter) -> None:
    async with running(home) as agent:

        def ticks() -> int:
            stat = Path(f"/proc/{agent.child.pid}/stat").read_text().rpartition(") ")[2].split()
            return int(stat[11]) + int(stat[12])

        before, began = ticks(), time.monotonic()
        await until(lambda: time.monotonic() - began > 1.5)
        assert (ticks() - before) / os.sysconf("SC_CLK_TCK") <= 0.01
