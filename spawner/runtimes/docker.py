"""Agents in containers of a Docker Engine.

The name (deployment and tenant, no generation) is the wall against two containers on one volume: the
engine lets one create win. Containers are never used again and never removed by the engine itself; what
is to go is removed and then asked for until the engine says 404.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from infra.kit.errors import AlcoveError
from spawner import data
from spawner.layout import Layout, Owner
from spawner.runtimes import Found, Spec
from spawner.runtimes import container as body
from spawner.runtimes.engine import Engine, Refused

_GONE_S = 15.0
_CREATE_TRIES = 8


class DockerRuntime:
    """See `Runtime`."""

    name = "docker"
    wall = True

    def __init__(
        self,
        engine: Engine,
        *,
        deployment: str,
        image: str,
        layout: Layout,
        tenants_dir: Path | None = None,
        sockets_volume: str | None = None,
        container_runtime: str | None = None,
    ) -> None:
        self.owner: Owner = layout.owner
        self._engine, self._deployment, self._image = engine, deployment, image
        self._layout, self._tenants, self._volume = layout, tenants_dir, sockets_volume
        self.container_runtime = container_runtime

    async def volume(self, tenant: str) -> None:
        """See `Runtime`. A directory where there is one for tenants, else a named volume."""
        if self._tenants is not None:
            data.prepare(self._tenants / tenant, uid=self.owner.uid, gid=self.owner.gid)
            return
        labels = {body.DEPLOYMENT: self._deployment, body.TENANT: tenant}
        name = self._name(tenant)
        await self._call("volume", lambda client: client.create_volume(name, labels=labels))

    async def create(self, spec: Spec) -> None:
        """See `Runtime`."""
        image = await self.image_id()
        binds = [
            f"{await self._on_host(spec.agent_dir)}:{body.AGENT_DIR}:rw",
            f"{await self._on_host(spec.meter_dir)}:{body.METER_DIR}:ro",
            f"{self._tenants / spec.tenant if self._tenants else self._name(spec.tenant)}:/data:rw",
        ]
        runtime = self.container_runtime
        digest = spec.digest(image=image, binds=binds, owner=self.owner, runtime=runtime)
        labels = body.labels(self._deployment, spec.tenant, spec.generation, digest)
        environment = body.environment(spec.tenant, spec.generation)

        def create(client: Any) -> None:
            self._create(client, spec, image, binds, labels=labels, environment=environment)

        for _ in range(_CREATE_TRIES):
            try:
                await self._call("create", create)
            except Refused as refused:
                if refused.said != 409:
                    raise
                if await self._adopted(spec, labels):
                    return
            else:
                return
        raise AlcoveError("unavailable", "the container's name does not come free", reason="name")

    async def start(self, tenant: str, generation: int) -> None:
        """See `Runtime`."""
        found = await self._inspect(tenant, generation)
        if found is None:
            raise AlcoveError("not_found", "the container is not there", reason="vanished")
        if found["State"]["Status"] == "running":
            return
        if found["State"]["Status"] != "created":
            raise AlcoveError("conflict", "the agent has already ended", reason="ended")
        await self._call("start", lambda client: client.start(found["Id"]))

    async def stop(self, tenant: str, generation: int, *, grace_s: float) -> None:
        """See `Runtime`."""
        found = await self._inspect(tenant, generation)
        if found is None:
            return
        identity = found["Id"]
        if found["State"]["Running"] and grace_s > 0:
            with suppress(Refused):  # 404: gone already; anything else: the removal below forces it
                await self._call(
                    "stop", lambda client: client.stop(identity, timeout=round(grace_s)), stop=True
                )
        await self._remove(identity)

    async def instances(self, tenant: str | None = None) -> list[Found]:
        """See `Runtime`."""
        labels = [f"{body.DEPLOYMENT}={self._deployment}"]
        labels.append(f"{body.TENANT}={tenant}" if tenant else body.TENANT)
        listed = await self._call(
            "list", lambda client: client.containers(all=True, filters={"label": labels})
        )
        return [found for one in listed if (found := await self._found(one)) is not None]

    async def stored(self, most_bytes: Mapping[str, int]) -> dict[str, int]:
        """See `Runtime`. Volumes are measured by the engine, all at once, as nobody else may look."""
        if self._tenants is not None:
            return await asyncio.to_thread(data.sizes, self._tenants, most_bytes)
        names = {self._name(tenant): tenant for tenant in most_bytes}
        if not names:
            return {}
        told = await self._call("df", lambda client: client.df())
        sizes = {one["Name"]: (one["UsageData"] or {}).get("Size", -1) for one in told["Volumes"]}
        return {who: sizes[name] for name, who in names.items() if sizes.get(name, -1) >= 0}

    async def deaths(self) -> AsyncIterator[str]:
        """See `Runtime`. The engine's event stream, read by a thread of its own."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        filters = {
            "type": "container",
            "event": ["die", "destroy"],
            "label": [f"{body.DEPLOYMENT}={self._deployment}", body.TENANT],
        }
        client = await self._engine.listener()

        def tell(tenant: str | None) -> None:
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(heard.put_nowait, tenant)

        def listen() -> None:
            with suppress(Exception):  # however the line breaks: the caller opens it anew
                for event in client.events(filters=filters, decode=True):
                    tell(event["Actor"]["Attributes"][body.TENANT])
            tell(None)

        threading.Thread(target=listen, name="engine-events", daemon=True).start()
        try:
            while (tenant := await heard.get()) is not None:
                yield tenant
        finally:
            client.close()

    async def close(self) -> None:
        """Closes the connections; ends nothing."""
        self._engine.close()

    async def probe(self, spec: Spec, command: list[str]) -> None:
        """Runs `command` within an agent's walls, without an agent's mounts but its own directory."""
        image = await self.image_id()
        binds = [f"{await self._on_host(spec.agent_dir)}:{body.AGENT_DIR}:rw"]
        labels = body.labels(self._deployment, spec.tenant, spec.generation, "probe")

        def create(client: Any) -> None:
            self._create(client, spec, image, binds, labels=labels, entrypoint=command)

        await self._call("create", create)
        await self.start(spec.tenant, spec.generation)

    async def version(self) -> str:
        """The engine's version. Raises `unavailable`."""
        known = await self._call("version", lambda client: client.version())
        return str(known["Version"])

    async def known_runtimes(self) -> list[str]:
        """Names of the container runtimes that the engine may be asked for. Raises `unavailable`."""
        told = await self._call("info", lambda client: client.info())
        return sorted(told.get("Runtimes") or {})

    async def image_id(self) -> str:
        """The image, pinned to its digest. Raises `unavailable` (reason `no_image`)."""
        try:
            found = await self._call("image", lambda client: client.inspect_image(self._image))
        except Refused as refused:
            if refused.said != 404:
                raise
            raise AlcoveError(
                "unavailable", f"the agent's image {self._image} is not there", reason="no_image"
            ) from refused
        return str(found["Id"])

    def _create(self, client: Any, spec: Spec, image: str, binds: list[str], **more: Any) -> None:
        client.create_container(
            image=image,
            name=self._name(spec.tenant),
            user=f"{self.owner.uid}:{self.owner.gid}",
            hostname="agent",
            healthcheck={"test": ["NONE"]},
            stop_signal="SIGTERM",
            host_config=body.hardened(client, spec.limits, binds, self.container_runtime),
            **more,
        )

    async def _found(self, listed: dict[str, Any]) -> Found | None:
        labels = listed["Labels"]
        found = Found(
            labels[body.TENANT],
            int(labels[body.GENERATION]),
            running=listed["State"] in ("running", "paused", "restarting"),
            created_at=int(listed["Created"]) * 1000,
        )
        if found.running or listed["State"] == "created":
            return found
        identity = listed["Id"]
        try:
            known = await self._call("inspect", lambda client: client.inspect_container(identity))
            words = await self._call("logs", lambda client: client.logs(identity, tail=20))
        except Refused as refused:
            # Removed between the two questions; or it cannot be said how it ended, yet that it did.
            return None if refused.said == 404 else found
        return Found(
            found.tenant,
            found.generation,
            running=False,
            created_at=found.created_at,
            exit_code=int(known["State"]["ExitCode"]),
            oom_killed=bool(known["State"]["OOMKilled"]),
            last_words=words.decode(errors="replace")[-2000:],
        )

    async def _adopted(self, spec: Spec, labels: dict[str, str]) -> bool:
        """Whether what holds the name is what we wanted to make; if it is something older, it is removed."""
        name = self._name(spec.tenant)
        try:
            found = await self._call("inspect", lambda client: client.inspect_container(name))
        except Refused:
            await asyncio.sleep(0.1)  # the name is on its way out
            return False
        theirs = found["Config"]["Labels"] or {}
        mine = {key: theirs.get(key) for key in labels} == labels
        if mine and found["State"]["Status"] == "created":
            return True
        if theirs.get(body.DEPLOYMENT) != self._deployment:
            raise AlcoveError("conflict", f"a stranger's container is called {name}", reason="name")
        if int(theirs.get(body.GENERATION, 0)) > spec.generation:
            raise AlcoveError("conflict", "a newer generation exists", reason="newer")
        await self._remove(found["Id"])
        return False

    async def _inspect(self, tenant: str, generation: int) -> dict[str, Any] | None:
        name = self._name(tenant)
        try:
            found: dict[str, Any] = await self._call(
                "inspect", lambda client: client.inspect_container(name)
            )
        except Refused as refused:
            if refused.said == 404:
                return None
            raise
        labels = found["Config"]["Labels"] or {}
        if labels.get(body.DEPLOYMENT) != self._deployment:
            return None
        return found if labels.get(body.GENERATION) == str(generation) else None

    async def _remove(self, identity: str) -> None:
        """Removes one container and asks until the engine says that it is gone."""
        deadline, pause_s = time.monotonic() + _GONE_S, 0.02
        while time.monotonic() < deadline:
            try:
                await self._call(
                    "remove",
                    lambda client: client.remove_container(identity, force=True, v=False),
                    stop=True,
                )
            except Refused as refused:
                if refused.said == 404:
                    return
                # 409: its removal is under way already; anything else may pass.
                pause_s = 0.02 if refused.said == 409 else min(1.0, 2 * pause_s)
            await asyncio.sleep(pause_s)
        raise AlcoveError("unavailable", "the engine does not remove the container", reason="stuck")

    async def _on_host(self, path: Path) -> Path:
        """Where the engine sees a path of ours: the same, or below the mountpoint of the named volume."""
        if self._volume is None:
            return path
        name = self._volume
        known = await self._call("volume", lambda client: client.inspect_volume(name))
        return Path(known["Mountpoint"]) / path.relative_to(self._layout.root)

    async def _call(self, name: str, what: Any, *, stop: bool = False) -> Any:
        return await self._engine.call(what, stop=stop, name=name)

    def _name(self, tenant: str) -> str:
        return f"alcove-{self._deployment}-{tenant}"
