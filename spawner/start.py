"""A start, from `creating` to `ready` or `failed`. Every step may be repeated, so a start that a killed
spawner left behind goes on where its row says."""

import asyncio
import logging
from dataclasses import dataclass

from infra.kit import ids
from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from spawner import states, wire
from spawner.agent_client import AgentClient
from spawner.breaker import Breaker
from spawner.faults import Faults
from spawner.instances import Row
from spawner.journal import Journal
from spawner.keys import Keys
from spawner.layout import Layout
from spawner.metrics import SpawnerMetrics
from spawner.plans import Plans
from spawner.runtimes import Found, Runtime, Spec
from spawner.undo import Undo

log = logging.getLogger(__name__)
_ASK_AGAIN_S = (0.02, 0.03, 0.05, 0.05, 0.1)
_LOOK_EVERY_S = 0.5
_PHASES: tuple[wire.Phase, ...] = ("key", "volume", "create", "start", "answering")
_FATAL = {"untrusted_socket", "wrong_generation"}


@dataclass(frozen=True, slots=True)
class Start:
    """Carries one row from `creating` or `starting` to where it comes to rest."""

    journal: Journal
    runtime: Runtime
    layout: Layout
    keys: Keys
    agents: AgentClient
    plans: Plans
    undo: Undo
    breaker: Breaker
    metrics: SpawnerMetrics
    faults: Faults
    clock: Clock
    deployment_secret: str
    timeout_s: float

    async def __call__(self, row: Row) -> None:
        """One start. Whatever fails ends in `failed` with its phase named; raises Moved only."""
        deadline_at = row.deadline_at or 0
        try:
            # Both phases share no deadline: each state's own was written when it began.
            left_s = (deadline_at - self.clock.now_at()) / 1000
            async with asyncio.timeout(min(self.timeout_s, max(0.0, left_s))):
                if row.state == "creating":
                    await self._create(row)
                else:
                    await self._answer(row)
        except TimeoutError:
            await self._fail(row, _too_slow(await self._phase(row)))
        except AlcoveError as error:
            await self._fail(
                row, wire.Problem(code=error.reason or error.code, message=error.message)
            )
        except OSError as error:
            log.exception("start failed")
            problem = wire.Problem(
                code="internal", message=f"the machine refused: {error.strerror}"
            )
            await self._fail(row, problem)

    async def _create(self, row: Row) -> None:
        tenant, generation = row.tenant, row.generation
        self.faults.at("creating")
        self.layout.make(tenant, generation)
        self.faults.at("directories")
        meter_dir = self.layout.meter(tenant, generation)
        key = await self.keys.mint(tenant, generation, str(meter_dir))
        if key.status != "active":
            raise AlcoveError("forbidden", f"the account is {key.status}", reason=key.status)
        secret = ids.instance_secret(self.deployment_secret, tenant, generation)
        self.layout.write_secrets(tenant, generation, key=key.key, secret=secret)
        self.faults.at("key")
        row = await self._tell(row, "volume")
        await self.runtime.volume(tenant)
        self.faults.at("volume")
        row = await self._tell(row, "create")
        agent_dir = self.layout.agent(tenant, generation)
        limits = self.plans.limits(key.plan)
        await self.runtime.create(Spec(tenant, generation, agent_dir, meter_dir, limits))
        self.faults.at("created")
        async with self.journal.transaction(tenant) as tx:
            await states.set_plan(tx, tenant, key.plan)
            await states.to_starting(tx, row, timeout_s=self.timeout_s)
        self.faults.at("starting")

    async def _answer(self, row: Row) -> None:
        await self.runtime.start(row.tenant, row.generation)
        self.faults.at("started")
        row = await self._tell(row, "answering")
        url = self.layout.url(row.tenant, row.generation)
        await self._until_it_answers(row, url)
        self.layout.seal(row.tenant, row.generation)
        self.faults.at("answering")
        async with self.journal.transaction(row.tenant) as tx:
            ready = await states.to_ready(tx, row, url=url)
        self.faults.at("ready")
        self.breaker.worked()
        self.metrics.started(self.clock.now_at() - row.changed_at)
        log.info("ready", extra={"generation": ready.generation})

    async def _until_it_answers(self, row: Row, url: str) -> None:
        """Returns once the right generation answers; raises as soon as it is clear that it never will."""
        loop = asyncio.get_running_loop()
        attempt, look_at = 0, loop.time()
        while True:
            try:
                health = await self.agents.health(url)
                if health.generation != row.generation:
                    raise AlcoveError(
                        "conflict",
                        f"generation {health.generation} answers in place of {row.generation}",
                        reason="wrong_generation",
                    )
                if health.ok:
                    return
            except AlcoveError as error:
                if error.reason in _FATAL:
                    raise
            if loop.time() >= look_at:
                _require_running(await self.runtime.instances(row.tenant), row)
                look_at = loop.time() + _LOOK_EVERY_S
            await asyncio.sleep(_ASK_AGAIN_S[min(attempt, len(_ASK_AGAIN_S) - 1)])
            attempt += 1

    async def _tell(self, row: Row, phase: wire.Phase) -> Row:
        """Tells that `phase` begins, unless a start that goes on has told it before."""
        if _PHASES.index(row.phase) >= _PHASES.index(phase):
            return row
        async with self.journal.transaction(row.tenant) as tx:
            return await states.tell(tx, row, phase)

    async def _phase(self, row: Row) -> wire.Phase:
        newest = await self.journal.after(row.tenant, row.seq)
        return newest[-1].phase if newest else row.phase

    async def _fail(self, row: Row, problem: wire.Problem) -> None:
        try:
            await self.undo(row.tenant, row.generation, grace_s=0)
        except (AlcoveError, OSError) as error:  # the reconciler removes what is left
            log.warning("failed start not undone yet", extra={"error": str(error)})
        async with self.journal.transaction(row.tenant) as tx:
            current = await states.again(tx, row)
            await states.to_failed(tx, current, problem)
        self.breaker.failed(row.tenant, current.phase, problem)
        self.metrics.start_failures.labels(current.phase).inc()
        log.warning("start failed", extra={"code": problem.code, "phase": current.phase})


def _require_running(found: list[Found], row: Row) -> None:
    for one in found:
        if one.generation == row.generation:
            if one.running:
                return
            log.warning("agent ended during its start", extra={"last_words": one.last_words})
            raise AlcoveError("unavailable", _how_it_ended(one), reason="agent_died")
    raise AlcoveError("unavailable", "the instance was removed while it started", reason="vanished")


def _how_it_ended(found: Found) -> str:
    if found.oom_killed:
        return "the agent ran out of memory"
    return f"the agent ended (exit code {found.exit_code})"


def _too_slow(phase: wire.Phase) -> wire.Problem:
    return wire.Problem(code="timeout", message=f"the start took too long in phase {phase!r}")
