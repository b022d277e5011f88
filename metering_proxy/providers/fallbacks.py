"""Where a call goes next when a provider fails before it has said anything: chains of models, as rows.

A chain has the name of a model (its targets follow that model) or a name of its own (an alias: its first target is
what is called). Targets are canonical ids; what they are worth now is looked up at each call.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, insert, select

from infra.kit.db import Database
from infra.kit.errors import field_error
from metering_proxy import changes, wire
from metering_proxy.models import fallback
from metering_proxy.providers.connections import folded

# The name of the model that an admin made the default.
DEFAULT = "default"


class Fallbacks:
    """Every chain by its name, as names are compared."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._chains: Mapping[str, tuple[str, ...]] = {}
        self._in_turn = changes.InTurn(db)

    def of(self, name: str) -> tuple[str, ...]:
        """The targets of a name, in their order."""
        return self._chains.get(folded(name), ())

    def listed(self) -> wire.Fallbacks:
        """All chains by name."""
        rows = sorted(self._chains.items())
        return wire.Fallbacks(
            fallbacks=[wire.Fallback(name=name, targets=list(targets)) for name, targets in rows]
        )

    async def load(self) -> None:
        """Reads every row anew."""
        ordered = select(fallback).order_by(fallback.c.name, fallback.c.position)
        async with self._in_turn.read() as reading:
            chains: dict[str, tuple[str, ...]] = {}
            for row in await reading.rows(ordered):
                chains[row["name"]] = (*chains.get(row["name"], ()), row["target"])
            self._chains = chains

    async def put(self, name: str, targets: Sequence[str], known: Sequence[str]) -> wire.Fallback:
        """Replaces a chain; no targets: there is none. Live here when it returns, everywhere within a second.

        `known`: the canonical ids that there are. Raises `invalid` with `details.fields`.
        """
        name, targets = folded(name), [folded(target) for target in targets]
        _check(name, targets, known)
        async with self._db.transaction() as tx:
            await tx.alone(f"fallback/{name}")
            await tx.execute(delete(fallback).where(fallback.c.name == name))
            for position, target in enumerate(targets):
                await tx.execute(
                    insert(fallback).values(name=name, position=position, target=target)
                )
            await changes.note(tx, "provider", "fallbacks")
        await self.load()
        return wire.Fallback(name=name, targets=list(targets))


def _check(name: str, targets: Sequence[str], known: Sequence[str]) -> None:
    there_are = {folded(id) for id in known}
    short = {id.partition("/")[2] for id in there_are}
    if targets and name not in there_are and (name in short or name == DEFAULT):
        raise field_error("name", "another model answers to this name: name it with its provider")
    for target in targets:
        if target not in there_are:
            raise field_error("targets", f"there is no model {target!r}")
        if target == name:
            raise field_error("targets", "a model is no fallback of its own")
    if len(set(targets)) < len(targets):
        raise field_error("targets", "each target once")
