"""Which runtime this machine gets: what the settings ask for, and what the probes found."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from spawner import probes, wire
from spawner.errors import NoRuntime
from spawner.layout import Layout, own, owner_for
from spawner.metrics import SpawnerMetrics
from spawner.runtimes import Runtime
from spawner.runtimes.docker import DockerRuntime
from spawner.runtimes.engine import Engine
from spawner.runtimes.process import ProcessRuntime
from spawner.settings import Settings

log = logging.getLogger(__name__)


_NOT_TRIED = wire.Probe(
    name="engine",
    ok=False,
    detail="containers were not tried: ALCOVE_SPAWNER_RUNTIME=process",
    remedy="Set it to auto",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A runtime, the layout of its sockets, what was probed, and how it is closed."""

    runtime: Runtime
    layout: Layout
    probes: list[wire.Probe]
    close: Callable[[], Awaitable[None]]


async def choose(settings: Settings, metrics: SpawnerMetrics | None = None) -> Chosen:
    """Probes and decides. Raises NoRuntime."""
    if settings.runtime == "process":
        return _processes(settings, [_NOT_TRIED])
    chosen = _containers(settings, metrics)
    assert isinstance(chosen.runtime, DockerRuntime)
    tried = await probes.containers(chosen.runtime, chosen.layout)
    for probe in tried.probes:
        log.info("probe", extra={"probe": probe.name, "ok": probe.ok, "detail": probe.detail})
    if tried.passes:
        return Chosen(chosen.runtime, chosen.layout, tried.probes, chosen.close)
    await chosen.close()
    last = tried.probes[-1]
    if settings.runtime == "docker":
        raise NoRuntime(f"ALCOVE_SPAWNER_RUNTIME=docker, but {last.detail}. {last.remedy}")
    if settings.container_runtime is not None:
        # Who asked for a stronger wall is not given none at all.
        asked = f"ALCOVE_CONTAINER_RUNTIME={settings.container_runtime}"
        raise NoRuntime(f"{asked}, but {last.detail}. {last.remedy}")
    return _processes(settings, tried.probes)


def _containers(settings: Settings, metrics: SpawnerMetrics | None) -> Chosen:
    layout = Layout(settings.sockets_dir, owner_for(settings.agent_uid, settings.agent_gid))
    runtime = DockerRuntime(
        Engine(settings.docker_host, metrics),
        deployment=settings.deployment,
        image=settings.agent_image,
        layout=layout,
        tenants_dir=settings.tenants_dir,
        sockets_volume=settings.sockets_volume,
        container_runtime=settings.container_runtime,
    )
    return Chosen(runtime, layout, [], runtime.close)


def _processes(settings: Settings, tried: list[wire.Probe]) -> Chosen:
    if settings.tenants_dir is None:
        raise NoRuntime("agents as child processes need ALCOVE_SPAWNER_TENANTS_DIR")
    layout = Layout(settings.sockets_dir, own())
    runtime = ProcessRuntime(
        tenants_dir=settings.tenants_dir, layout=layout, deployment=settings.deployment
    )
    log.warning("agents run as child processes: no wall stands between tenants")
    return Chosen(runtime, layout, tried, runtime.close)


def every_runtime(settings: Settings) -> list[Chosen]:
    """Both runtimes, unprobed: for a sweep of whatever either has left."""
    found = [_containers(settings, None)]
    if settings.tenants_dir is not None:
        found.append(_processes(settings, []))
    return found
