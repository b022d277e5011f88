"""What is tried on this machine before agents run in containers, each with its name and its remedy.

`auto` takes containers if every needed probe passes, else child processes; `docker` refuses to start.
"""

import asyncio
import contextlib
import os
import secrets
from dataclasses import dataclass

from infra.kit import unix
from infra.kit.errors import AlcoveError
from spawner import wire
from spawner.layout import Layout
from spawner.plans import Limits
from spawner.runtimes import Spec
from spawner.runtimes.docker import DockerRuntime

_LISTEN = """
import os, socket
os.umask(0o007)
listener = socket.socket(socket.AF_UNIX)
listener.bind("/run/alcove/agent/agent.sock")
listener.listen(1)
listener.accept()[0].sendall(b"hello")
"""
_SHARE = "The engine must run on this machine and see ALCOVE_SOCKETS_DIR at the same path"
_SHARE_THROUGH = (
    f"{_SHARE}, and the container runtime must pass unix sockets (gVisor: --host-uds=all)"
)
_ENGINE_S = 5.0
_SOCKET_S = 20.0
# No smaller than the smallest plan: a runtime with a kernel of its own (gVisor) has threads and memory of its own.
_SMALL = Limits(memory_mb=384, cpus=1.0, pids=128, tmp_mb=8, storage_mb=1, idle_s=60)


@dataclass(frozen=True, slots=True)
class Tried:
    """Everything that was probed; `passes` whether containers may be used."""

    probes: list[wire.Probe]
    passes: bool


async def containers(runtime: DockerRuntime, layout: Layout) -> Tried:
    """Tries what containers need, in order, and stops at the first thing that is missing."""
    probes = [await _engine(runtime)]
    if probes[-1].ok and runtime.container_runtime is not None:
        probes.append(await _runtime(runtime, runtime.container_runtime))
    if probes[-1].ok:
        probes.append(await _image(runtime))
    if probes[-1].ok:
        probes.append(await _socket(runtime, layout))
    passes = all(probe.ok for probe in probes)
    if passes:
        probes.append(_owner(layout))
    return Tried(probes, passes)


async def _engine(runtime: DockerRuntime) -> wire.Probe:
    name = "engine"
    try:
        async with asyncio.timeout(_ENGINE_S):
            version = await runtime.version()
    except (AlcoveError, TimeoutError) as error:
        return wire.Probe(
            name=name,
            ok=False,
            detail=f"no container engine answers ({str(error) or 'no answer in time'})",
            remedy="Install Docker Engine and start it, or let this user reach its socket",
        )
    return wire.Probe(name=name, ok=True, detail=f"Docker Engine {version} answers")


async def _runtime(runtime: DockerRuntime, wanted: str) -> wire.Probe:
    """Whether the engine knows the container runtime that is asked for; that it works, `_socket` shows."""
    name = "container_runtime"
    try:
        known = await runtime.known_runtimes()
    except AlcoveError as error:
        return wire.Probe(
            name=name, ok=False, detail=error.message, remedy="Look at the engine's log"
        )
    if wanted in known:
        return wire.Probe(name=name, ok=True, detail=f"the engine knows the runtime {wanted}")
    return wire.Probe(
        name=name,
        ok=False,
        detail=f"the engine knows no container runtime {wanted!r} (it knows {', '.join(known)})",
        remedy="Install it and name it under `runtimes` in the engine's daemon.json (docs/operating.md)",
    )


async def _image(runtime: DockerRuntime) -> wire.Probe:
    try:
        image = await runtime.image_id()
    except AlcoveError as error:
        return wire.Probe(name="image", ok=False, detail=error.message, remedy="Run: make images")
    short = image.removeprefix("sha256:")[:12]
    return wire.Probe(name="image", ok=True, detail=f"the agent's image is there ({short})")


async def _socket(runtime: DockerRuntime, layout: Layout) -> wire.Probe:
    """Whether a container with a tenant's walls can bind a socket that this process can connect to."""
    name = "shared_socket"
    tenant = f"probe-{secrets.token_hex(4)}"
    try:
        async with asyncio.timeout(_SOCKET_S):
            await _greeted(runtime, layout, tenant)
    except (AlcoveError, OSError, TimeoutError) as error:
        return wire.Probe(
            name=name,
            ok=False,
            detail=f"a socket shared with a container does not answer: {str(error) or 'no answer in time'}",
            remedy=_SHARE if runtime.container_runtime is None else _SHARE_THROUGH,
        )
    finally:
        with contextlib.suppress(AlcoveError):
            await runtime.stop(tenant, 0, grace_s=0)
        layout.remove(tenant, 0)
    return wire.Probe(name=name, ok=True, detail="a socket shared with a container answers")


async def _greeted(runtime: DockerRuntime, layout: Layout, tenant: str) -> None:
    layout.make(tenant, 0)
    spec = Spec(tenant, 0, layout.agent(tenant, 0), layout.meter(tenant, 0), _SMALL)
    await runtime.probe(spec, ["python3", "-c", _LISTEN])
    while True:
        try:
            path = layout.socket(tenant, 0)
            reader, writer = await unix.open_stream(path, owner_uid=layout.owner.uid)
        except unix.NotConnected:
            for ended in await runtime.instances(tenant):
                if ended.exit_code is not None:
                    raise OSError(f"its program ended: {ended.last_words.strip()[-200:]}") from None
            await asyncio.sleep(0.05)
            continue
        try:
            if await reader.readexactly(5) == b"hello":
                return
            raise OSError("something else answers there")
        finally:
            writer.close()
            await writer.wait_closed()


def _owner(layout: Layout) -> wire.Probe:
    owner = layout.owner
    if owner.apart:
        return wire.Probe(
            name="own_uid", ok=True, detail=f"agents have a uid of their own ({owner.uid})"
        )
    return wire.Probe(
        name="own_uid",
        ok=False,
        detail=f"agents run with this service's own uid ({os.geteuid()}), in containers still",
        remedy="Run as root, or as a member of the group ALCOVE_AGENT_GID",
    )
