"""Where each tenant's agent is, as the spawner said last. Asked again when the answer proves stale."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable

from infra.kit.errors import AlcoveError
from spawner.client import SpawnerClient
from spawner.wire import Instance, Reason

_KEPT = 20_000


class Instances:
    """Remembers ready instances, so that relaying needs no spawner; everything else is asked anew."""

    def __init__(self, spawner: SpawnerClient) -> None:
        self._spawner = spawner
        self._ready: OrderedDict[str, Instance] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Instance]] = {}

    async def current(self, tenant: str) -> Instance:
        """The instance: from memory when it was ready, else as the spawner says now.

        Raises what the spawner's client raises. Never wakes.
        """
        return self._ready.get(tenant) or await self.ask(tenant)

    async def ask(self, tenant: str) -> Instance:
        """The instance as the spawner says now; callers at the same time share one question."""
        task = self._asking.get(tenant)
        if task is None:
            task = asyncio.create_task(_in_plain_words(self._spawner.instance(tenant)))
            self._asking[tenant] = task
            task.add_done_callback(lambda done: self._asked(tenant, done))
        return self.learn(await asyncio.shield(task))

    async def wake(self, tenant: str, reason: Reason) -> Instance:
        """Asks for a running instance; answers at once, whatever its state. Raises `forbidden`."""
        return self.learn(await _in_plain_words(self._spawner.wake(tenant, reason)))

    async def stop(self, tenant: str) -> Instance:
        """Stops the instance; its data stays."""
        return self.learn(await _in_plain_words(self._spawner.stop(tenant)))

    def learn(self, instance: Instance) -> Instance:
        """Takes what the spawner said."""
        if instance.state == "ready" and instance.url:
            self._ready[instance.tenant] = instance
            self._ready.move_to_end(instance.tenant)
            if len(self._ready) > _KEPT:
                self._ready.popitem(last=False)
        else:
            self._ready.pop(instance.tenant, None)
        return instance

    def heard(self, tenant: str, generation: int) -> None:
        """A phase said that this generation is not ready: what is remembered of it, or older, is stale."""
        known = self._ready.get(tenant)
        if known is not None and known.generation <= generation:
            del self._ready[tenant]

    def forget(self, instance: Instance) -> None:
        """The agent did not answer where this said: ask again next time."""
        known = self._ready.get(instance.tenant)
        if known is not None and known.generation <= instance.generation:
            del self._ready[instance.tenant]

    def _asked(self, tenant: str, done: asyncio.Task[Instance]) -> None:
        self._asking.pop(tenant, None)
        if not done.cancelled():
            done.exception()  # taken, also when everybody who asked has left


async def _in_plain_words(answer: Awaitable[Instance]) -> Instance:
    """A person who is told that the spawner is away cannot know what that means for them."""
    try:
        return await answer
    except AlcoveError as error:
        if error.reason == "unreachable" or error.code == "timeout":
            raise AlcoveError(
                error.code,
                "Your assistant cannot be reached just now. Nothing is lost.",
                reason="spawner_away",
            ) from error
        raise
