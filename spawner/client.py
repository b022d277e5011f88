"""The spawner's typed client: what the gateway calls."""

from collections.abc import AsyncGenerator
from typing import Literal

from infra.kit.client import ServiceClient
from spawner import wire


class SpawnerClient:
    """Calls one spawner. Each method raises what the spawner raised; besides, `unavailable` where it
    cannot be reached and `timeout` where it does not answer."""

    def __init__(self, url: str, secret: str) -> None:
        self._service = ServiceClient(url, secret, name="spawner")

    async def wake(self, tenant: str, reason: wire.Reason) -> wire.Instance:
        """Asks for a running instance and answers at once, whatever its state. Repeat at will.

        Raises `forbidden` (reason `suspended`).
        """
        body = {"wake": True, "reason": reason}
        return self._instance(await self._service.call("PUT", f"/instances/{tenant}", body=body))

    async def instance(self, tenant: str) -> wire.Instance:
        """The instance as it is; `absent` for a tenant never started."""
        return self._instance(await self._service.call("GET", f"/instances/{tenant}"))

    async def stop(self, tenant: str, reason: str = "admin") -> wire.Instance:
        """Stops the instance, or the start under way. Its volume stays. Idempotent."""
        answer = await self._service.call(
            "DELETE", f"/instances/{tenant}", params={"reason": reason}
        )
        return self._instance(answer)

    async def clear(self, tenant: str) -> wire.Instance:
        """Lets the instance be awake past its storage for a quarter of an hour, so that its owner can delete.

        Raises `forbidden` (reason `storage_past_ceiling`) where there is too much for that.
        """
        return self._instance(await self._service.call("PUT", f"/instances/{tenant}/clearing"))

    async def events(self, tenant: str, after: int = 0) -> AsyncGenerator[wire.PhaseEvent, None]:
        """Phase events after number `after`, those of the past first; ends only when the line breaks."""
        async for event in self._service.events(
            f"/instances/{tenant}/events", params={"after": after}
        ):
            yield wire.PhaseEvent.model_validate_json(event.data)

    async def query(
        self,
        *,
        ids: list[str] | None = None,
        state: wire.State | None = None,
        sort: Literal["state", "changed_at"] = "changed_at",
        order: Literal["asc", "desc"] = "desc",
        offset: int = 0,
        limit: int = 50,
    ) -> wire.InstancePage:
        """A page of instances; with `ids`, of those tenants only, `absent` ones among them."""
        query = wire.InstanceQuery(
            ids=ids, state=state, sort=sort, order=order, offset=offset, limit=limit
        )
        answer = await self._service.call("POST", "/instances/query", body=query.model_dump())
        return wire.InstancePage.model_validate(answer)

    async def person_was_here(self, tenant: str, person_at: int) -> None:
        """Reports when a person's last byte came; older news than what is known changes nothing."""
        await self._service.call(
            "PUT", f"/instances/{tenant}/activity", body={"person_at": person_at}
        )

    async def suspend(self, tenant: str) -> wire.Instance:
        """Refuses starts from now on, and stops what runs."""
        return self._instance(await self._service.call("PUT", f"/tenants/{tenant}/suspension"))

    async def resume(self, tenant: str) -> wire.Instance:
        """Allows starts again; starts nothing."""
        return self._instance(await self._service.call("DELETE", f"/tenants/{tenant}/suspension"))

    async def set_plan(self, tenant: str, plan: str) -> wire.Instance:
        """Limits for the next start. Raises `invalid` (reason `unknown_plan`)."""
        answer = await self._service.call("PUT", f"/tenants/{tenant}/plan", body={"plan": plan})
        return self._instance(answer)

    async def host(self) -> wire.Host:
        """How instances run on this machine, and what was probed."""
        return wire.Host.model_validate(await self._service.call("GET", "/host"))

    async def close(self) -> None:
        """Closes the connections."""
        await self._service.close()

    @staticmethod
    def _instance(answer: object) -> wire.Instance:
        return wire.Instance.model_validate(answer)
