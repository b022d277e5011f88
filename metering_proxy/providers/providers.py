"""Connections that an admin made: rows with a sealed key, and the copy of them in memory that calls use."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from infra.kit.clock import Clock
from infra.kit.db import Database, Reading, Transaction
from infra.kit.errors import AlcoveError, field_error
from infra.kit.seal import Sealer
from metering_proxy import changes, wire
from metering_proxy.models import provider, provider_model, provider_price
from metering_proxy.providers.connections import Connection, offered
from metering_proxy.providers.kinds import base_url, kinds
from metering_proxy.providers.price_file import KnownModels

_RESERVED = frozenset(("local", "local-embeddings", "ollama", "lm-studio", "default"))
_UNSLUG = re.compile(r"[^a-z0-9]+")


class Providers:
    """Connections by id. Every change is live in this process when it returns, and in all within a second."""

    def __init__(self, db: Database, sealer: Sealer, known: KnownModels, clock: Clock) -> None:
        self._db, self._sealer, self._known, self._clock = db, sealer, known, clock
        self._connections: dict[str, Connection] = {}
        self._in_turn = changes.InTurn(db)

    @property
    def connections(self) -> Sequence[Connection]:
        """All of them, the default one first, then in the order of their making."""
        return list(self._connections.values())

    def get(self, connection: str) -> Connection:
        """The connection of that id. Raises `not_found`."""
        found = self._connections.get(connection)
        if found is None:
            raise AlcoveError("not_found", "there is no such connection")
        return found

    async def load(self, known: KnownModels | None = None) -> None:
        """Reads every row anew, by another price file if given; calls under way keep what they began with."""
        async with self._in_turn.read() as reading:
            self._known = known or self._known
            self._connections = await self._read(reading)

    async def create(self, new: wire.NewProvider) -> Connection:
        """Makes a connection. Raises `invalid` with `details.fields`."""
        kind = kinds().get(new.kind)
        if kind is None or kind.built_in:
            raise field_error("kind", f"there is no kind of provider {new.kind!r}")
        url = base_url(kind, new.base_url)
        if not new.name.strip():
            raise field_error("name", "a name is needed")
        if not kind.keyless and not new.key:
            raise field_error("key", "the provider's key is needed")
        self._check_models(new.kind, new.models, new.default_model)
        now_at = self._clock.now_at()
        async with self._db.transaction() as tx:
            await tx.alone("provider")
            taken = {row["id"] for row in await tx.rows(select(provider.c.id))}
            connection = _free_id(new.kind, new.name, taken | _RESERVED)
            await tx.execute(
                insert(provider).values(
                    id=connection,
                    kind=new.kind,
                    name=new.name.strip(),
                    base_url=url,
                    default_model=new.default_model or None,
                    enabled=int(new.enabled),
                    is_default=0,
                    created_at=now_at,
                    changed_at=now_at,
                    **self._sealed(connection, new.key),
                )
            )
            await self._put_models(tx, connection, new.models, now_at)
            if new.make_default:
                await _make_default(tx, connection)
            await changes.note(tx, "provider", connection)
        await self.load()
        return self.get(connection)

    async def change(self, connection: str, change: wire.ProviderChange) -> Connection:
        """Changes what `change` names. Raises `not_found`, `invalid` with `details.fields`."""
        now = self.get(connection)
        given = change.model_fields_set
        values: dict[str, Any] = {"changed_at": max(self._clock.now_at(), now.revision + 1)}
        if change.name is not None:
            values["name"] = change.name.strip()
        if "base_url" in given and change.base_url is not None:
            values["base_url"] = base_url(now.kind, change.base_url)
        if change.key:
            values |= self._sealed(connection, change.key)
        if "default_model" in given:
            values["default_model"] = change.default_model or None
        if change.enabled is not None:
            values["enabled"] = int(change.enabled)
        models = None if change.models is None else change.models
        rows = [wire.ModelRow.model_validate(dict(row)) for row in now.rows]
        default = change.default_model if "default_model" in given else now.default_model
        self._check_models(now.kind.name, rows if models is None else models, default)
        async with self._db.transaction() as tx:
            await tx.alone("provider")
            await tx.execute(update(provider).where(provider.c.id == connection).values(values))
            if models is not None:
                await self._put_models(tx, connection, models, values["changed_at"])
            if change.make_default:
                await _make_default(tx, connection)
            await changes.note(tx, "provider", connection)
        await self.load()
        return self.get(connection)

    async def delete(self, connection: str) -> None:
        """Forgets a connection with its key and its models; its prices stay, since entries name them.

        Raises `not_found`.
        """
        self.get(connection)
        async with self._db.transaction() as tx:
            await tx.execute(delete(provider_model).where(provider_model.c.provider == connection))
            await tx.execute(delete(provider).where(provider.c.id == connection))
            await changes.note(tx, "provider", connection)
        await self.load()

    async def remember_probe(self, connection: str, probe: wire.Probe) -> None:
        """Keeps what the last probe found."""
        async with self._db.transaction() as tx:
            await tx.execute(
                update(provider)
                .where(provider.c.id == connection)
                .values(probe=probe.model_dump_json())
            )
            await changes.note(tx, "provider", connection)
        await self.load()

    def _sealed(self, connection: str, key: str | None) -> dict[str, str | None]:
        text = (key or "").strip()
        if not text:
            return {"sealed_key": None, "key_hint": None}
        if not text.isascii() or not text.isprintable() or " " in text:
            raise field_error("key", "a key has no spaces and no special characters")
        hint = text[-4:] if len(text) >= 12 else "****"
        return {"sealed_key": self._sealer.seal(text, context(connection)), "key_hint": hint}

    def _check_models(
        self, kind: str, models: Sequence[wire.ModelRow], default: str | None
    ) -> None:
        names = [model.id for model in models]
        if len({name.casefold() for name in names}) != len(names):
            raise field_error("models", "a model stands there twice")
        known = [item.facts.id for item in self._known.get(kind, ())]
        if not names and not known:
            raise field_error("models", "at least one model with its price is needed")
        if default and default not in [*names, *known]:
            raise field_error(
                "default_model", f"{default} is not among the models that have a price"
            )

    async def _put_models(
        self, tx: Transaction, connection: str, models: Sequence[wire.ModelRow], now_at: int
    ) -> None:
        """Replaces the list of models; a price that changed begins now, in a row of its own."""
        await tx.execute(delete(provider_model).where(provider_model.c.provider == connection))
        for model in models:
            await tx.execute(
                insert(provider_model).values(
                    provider=connection,
                    model=model.id,
                    kind=model.kind,
                    context_tokens=model.context_tokens,
                    max_output_tokens=model.max_output_tokens,
                )
            )
            last = await tx.row(
                select(provider_price)
                .where(provider_price.c.provider == connection, provider_price.c.model == model.id)
                .order_by(provider_price.c.from_at.desc())
                .limit(1)
            )
            price = {"input_nanos": model.input_nanos, "output_nanos": model.output_nanos}
            if last is not None and all(last[name] == value for name, value in price.items()):
                continue
            from_at = now_at if last is None else max(now_at, last["from_at"] + 1)
            await tx.execute(
                insert(provider_price).values(
                    provider=connection, model=model.id, from_at=from_at, **price
                )
            )

    async def _read(self, reading: Reading) -> dict[str, Connection]:
        default_first = (provider.c.is_default.desc(), provider.c.created_at, provider.c.id)
        rows = await reading.rows(select(provider).order_by(*default_first))
        priced = await reading.rows(
            select(
                provider_model,
                *[c for c in provider_price.c if c.name not in ("provider", "model")],
            )
            .join(
                provider_price,
                (provider_price.c.provider == provider_model.c.provider)
                & (provider_price.c.model == provider_model.c.model),
            )
            .order_by(provider_model.c.model, provider_price.c.from_at)
        )
        return {
            row["id"]: self._connection(
                dict(row), [dict(p) for p in priced if p["provider"] == row["id"]]
            )
            for row in rows
        }

    def _connection(
        self, row: Mapping[str, Any], priced: Sequence[Mapping[str, Any]]
    ) -> Connection:
        kind = kinds()[row["kind"]]
        sealed = row["sealed_key"]
        return Connection(
            id=row["id"],
            kind=kind,
            name=row["name"],
            base_url=row["base_url"],
            models=offered(row["id"], kind, self._known, priced),
            key=self._sealer.open(sealed, context(row["id"])) if sealed else None,
            key_hint=row["key_hint"],
            default_model=row["default_model"],
            is_default=bool(row["is_default"]),
            enabled=bool(row["enabled"]),
            revision=row["changed_at"],
            probe=row["probe"],
            rows=_latest(priced),
        )


def _latest(priced: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Each entered model with its newest price, in the shape of wire.ModelRow."""
    newest = {row["model"]: row for row in priced}
    return tuple(
        {
            "id": name,
            "input_nanos": row["input_nanos"],
            "output_nanos": row["output_nanos"],
            "kind": row["kind"],
            "context_tokens": row["context_tokens"],
            "max_output_tokens": row["max_output_tokens"],
        }
        for name, row in newest.items()
    )


async def _make_default(tx: Transaction, connection: str) -> None:
    await tx.execute(update(provider).values(is_default=0))
    await tx.execute(update(provider).where(provider.c.id == connection).values(is_default=1))


def _free_id(kind: str, name: str, taken: set[str]) -> str:
    """An id that reads well before a model's name: the kind where it is one provider, else the name given."""
    base = kind if not kinds()[kind].keyless else _UNSLUG.sub("-", name.lower()).strip("-")
    base = base[:40] or "provider"
    candidates = [base, *(f"{base}-{n}" for n in range(2, 1000))]
    return next(candidate for candidate in candidates if candidate not in taken)


def context(connection: str) -> str:
    """What a sealed key is bound to: it opens nothing in another row."""
    return f"provider/{connection}/key"


def view(connection: Connection, *, is_default: bool) -> wire.Provider:
    """A connection as an admin sees it: with everything but its key."""
    default = connection.default_chat()
    return wire.Provider(
        id=connection.id,
        name=connection.name,
        kind=connection.kind.name,
        base_url=connection.base_url,
        key_hint=connection.key_hint,
        enabled=connection.enabled,
        local=connection.local,
        demo=connection.demo,
        default_model=default.facts.id if default else None,
        is_default=is_default,
        models=len(connection.models),
        rows=[wire.ModelRow.model_validate(dict(row)) for row in connection.rows],
        probe=wire.Probe.model_validate(json.loads(connection.probe)) if connection.probe else None,
    )
