"""`alcove run`: everything on this machine's loopback, until Ctrl-C."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import time
from typing import Any

from infra.cli import leftovers, services
from infra.cli.children import Child, Spec, once, stop_in_order
from infra.cli.home import FIRST_PORT, Home, Trouble, free_port, location, open_home
from infra.cli.stopwatch import Stopwatch
from infra.kit.client import ServiceClient
from infra.setup import say

_END_S = 9.0  # Ctrl-C ends everything within 10 s
_SWEEP_S = 3.0  # what the last step is sure to have of it


def run() -> int:
    """Start everything and serve until SIGINT or SIGTERM; the exit code. Raises Trouble."""
    home = open_home(location())
    try:
        return asyncio.run(_Run(home).whole())
    finally:
        home.close()


class _Run:
    """One run: what has been started, newest last."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._started: list[Child] = []

    async def whole(self) -> int:
        """Start, serve, stop. A second signal while stopping kills at once."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        starting = asyncio.create_task(self._start())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopping
            return 0
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            stop.clear()
            await self._end(stop)

    async def _start(self) -> None:
        watch, home = Stopwatch(os.environ), self._home
        say.line(f"Alcove starts. Its data lies in {home.data}")
        leftovers.end(home.state.get("children", {}))
        _prepare_sockets(home)
        port = _remembered_port(home)
        with watch.building():
            await self._agent_image()
        await asyncio.gather(self._migrate(), self._up(*services.models(home)))
        await self._up(services.meter(home), services.spawner(home))
        host = await self._host()
        await self._up(services.gateway(home, port, agent_uid=_agent_uid(host)))
        for child in self._started:
            child.keep()
        _tell_host(host)
        say.line(f"\n{watch.ready()}. Logs: {home.data / 'logs'}")
        say.line(f"Open {services.public_url(port)}")
        await _tell_admin_link(home)
        say.line("Ctrl-C ends everything.")

    async def _up(self, *specs: Spec) -> None:
        """Start `specs` side by side and wait until all are ready."""
        children = [Child(spec, self._home.data / "logs", say.line) for spec in specs]
        self._started += children
        await asyncio.gather(*(self._shown(child) for child in children))
        pids = {child.spec.name: child.pid for child in self._started}
        known = {name: leftovers.identity(pid) for name, pid in pids.items() if pid}
        self._home.state["children"] = known
        self._home.save()

    async def _shown(self, child: Child) -> None:
        try:
            with say.step(child.spec.title):
                await child.start()
        except Trouble as trouble:
            if child.spec.needed:
                raise
            say.line(f"{trouble}\n  ! {child.spec.title} is left out.")
            self._started.remove(child)
            await child.stop()

    async def _migrate(self) -> None:
        with say.step("Bring the databases to their newest shape"):
            results = await asyncio.gather(
                *(
                    once(
                        [sys.executable, "-m", service, "migrate"],
                        services.environment(self._home, service),
                        capture=True,
                    )
                    for service in services.SERVICES
                )
            )
        for service, (code, output) in zip(services.SERVICES, results, strict=True):
            if code:
                raise Trouble(f"{output}\n`python -m {service} migrate` ended with {code}")

    async def _agent_image(self) -> None:
        """Build the agent's image where an engine answers; without one the spawner says what that means."""
        if os.environ.get("ALCOVE_SPAWNER_RUNTIME") == "process":
            return
        command = [sys.executable, "-m", "infra.setup.images", "agent"]
        code, _ = await once(command, dict(os.environ))
        if code:
            say.line("  ! No image of the agent; agents will run as child processes.")

    async def _host(self) -> dict[str, Any]:
        secret = self._home.secret_file("service_secret").read_text().strip()
        client = ServiceClient(services.spawner(self._home).url, secret, name="spawner")
        try:
            host = await client.call("GET", "/host")
        finally:
            await client.close()
        assert isinstance(host, dict)
        return host

    async def _end(self, now: asyncio.Event) -> None:
        """Stop in the order gateway, spawner, meter, models; leave no process, socket or container."""
        if not self._started:
            shutil.rmtree(self._home.sockets, ignore_errors=True)
            return
        say.line("\nStopping …")
        began = time.monotonic()
        orderly = asyncio.create_task(self._stop(by_s=began + _END_S))
        hurry = asyncio.create_task(now.wait())
        await asyncio.wait({orderly, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurried = not orderly.done()
        for task in (orderly, hurry):
            task.cancel()
        await asyncio.gather(orderly, hurry, return_exceptions=True)
        for child in self._started:
            child.kill()
        if hurried:
            await self._sweep(within_s=_SWEEP_S)
        shutil.rmtree(self._home.sockets, ignore_errors=True)
        say.line(f"Stopped after {time.monotonic() - began:.1f} s.")

    async def _stop(self, *, by_s: float) -> None:
        children = list(reversed(self._started))
        names = [child.spec.name for child in children]
        above = names.index("spawner") + 1 if "spawner" in names else 0
        await stop_in_order(children[:above], by_s=by_s - _SWEEP_S)
        # What the sweep asks is the engine alone, so the rest need not wait for it.
        await asyncio.gather(
            self._sweep(within_s=by_s - time.monotonic()),
            stop_in_order(children[above:], by_s=by_s),
        )

    async def _sweep(self, *, within_s: float) -> None:
        """Let the spawner remove what a killed service may have left."""
        sweep = once(
            [sys.executable, "-m", "spawner", "sweep"],
            services.environment(self._home, "spawner"),
            capture=True,
        )
        try:
            code, output = await asyncio.wait_for(sweep, within_s)
        except TimeoutError:
            code, output = 1, f"no end after {within_s:.1f} s"
        if code:
            say.line(f"  ! Not everything could be swept up: {output.strip()}")


def _prepare_sockets(home: Home) -> None:
    """Give the sockets root to the group that agents have; the tenants' part of it is the spawner's."""
    if os.getuid() == 0:
        os.chown(home.sockets, -1, services.AGENT_ID)
    home.sockets.chmod(0o2770)
    shutil.rmtree(home.control, ignore_errors=True)
    home.control.mkdir(mode=0o700)


def _remembered_port(home: Home) -> int:
    before = home.state.get("port")
    port, wanted = free_port(before), before or FIRST_PORT
    if port != wanted:
        say.line(f"  ! Port {wanted} is taken by another program; this run uses {port}")
    if before is None:
        home.state["port"] = port
        home.save()
    return port


def _agent_uid(host: dict[str, Any]) -> int:
    """The owner of agents' sockets: child processes have our own uid, containers theirs."""
    return services.container_ids()[0] if host["runtime"] == "docker" else os.getuid()


def _tell_host(host: dict[str, Any]) -> None:
    kind = "containers" if host["runtime"] == "docker" else "child processes"
    say.line(f"\nAgents run as {kind}:")
    for probe in host["probes"]:
        remedy = f" → {probe['remedy']}" if not probe["ok"] and probe.get("remedy") else ""
        say.line(f"  {'✓' if probe['ok'] else '✗'} {probe['name']}: {probe['detail']}{remedy}")
    if not host["wall"]:
        say.line(
            "  ! Processes give NO WALL between agents and this machine:"
            " tools that could reach it are off. For yourself only, not for strangers."
        )


async def _tell_admin_link(home: Home) -> None:
    link = await ask_gateway(home, "admin-link")
    if link.get("url"):
        say.line(f"Become the admin (once, within 15 minutes): {link['url']}")


async def ask_gateway(home: Home, *words: str) -> dict[str, Any]:
    """What `python -m gateway WORDS` says with this data, its last line of JSON. Raises Trouble."""
    command = [sys.executable, "-m", "gateway", *words]
    code, output = await once(command, services.environment(home, "gateway"), capture=True)
    for line in reversed(output.splitlines() if code == 0 else []):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    said = output.strip()
    raise Trouble(f"{said}\n`python -m gateway {words[0]}` ended with {code}")
