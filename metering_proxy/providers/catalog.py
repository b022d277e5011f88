"""From a model's name to one model of one connection, once a request; and the list of what can be called."""

import contextlib
from collections.abc import Sequence

from infra.kit.errors import AlcoveError
from infra.kit.value import value
from metering_proxy import wire
from metering_proxy.pricing import Price
from metering_proxy.providers.connections import Connection, Model, folded
from metering_proxy.providers.detection import Detection
from metering_proxy.providers.fallbacks import DEFAULT, Fallbacks
from metering_proxy.providers.providers import Providers
from metering_proxy.wires.wire import Kind, Shape


@value
class Route:
    """Where a request goes and what it costs there, fixed at its start."""

    connection: Connection
    model: Model
    price: Price


class Catalog:
    """Every connection, those that answer first in front: the admin's, then servers found here, then the demo."""

    def __init__(self, providers: Providers, detection: Detection, fallbacks: Fallbacks) -> None:
        self._providers, self._detection, self._fallbacks = providers, detection, fallbacks

    async def connections(self) -> Sequence[Connection]:
        """All connections, disabled ones too."""
        return [*self._providers.connections, *await self._detection.connections()]

    async def routes(self, name: str, wire_name: str, kind: Kind, at: int) -> list[Route]:
        """The one model that `name` means, for that wire, and those that are called in its place, in their order.

        Names differ in no case; nothing else is guessed. A model in another's place is left out where it is
        not there now, speaks another wire, or has no price. Raises `invalid` (reason `model_unknown`,
        `wire_mismatch`, `model_not_priced`) and `unavailable` (reason `no_provider`).
        """
        live = [c for c in await self.connections() if c.enabled]
        found = _default(live, kind) if name == DEFAULT else _named(live, name)
        routes, others = [], self._fallbacks.of(name)
        if found is not None:
            routes.append(_route(found, wire_name, kind, at))
            others = self._fallbacks.of(found[1].id)
        elif not others and name != DEFAULT and live:
            told = f"there is no model {name!r}: GET /v1/models lists those that there are"
            raise AlcoveError("invalid", told, reason="model_unknown")
        for target in others:
            with contextlib.suppress(AlcoveError):
                if (other := _named(live, target)) is not None:
                    routes.append(_route(other, wire_name, kind, at))
        if not routes:
            raise AlcoveError(
                "unavailable", "no provider is connected for this", reason="no_provider"
            )
        return routes

    async def listing(self, at: int) -> wire.Models:
        """What can be called now. The demonstration model is there only while no other chat model is."""
        live = [c for c in await self.connections() if c.enabled]
        real = any(m.facts.kind == "chat" for c in live if not c.demo for m in c.models)
        shown = [c for c in live if not (c.demo and real)]
        default = _default(shown, "chat")
        rows = [
            _row(connection, model, default is not None and default[1] is model)
            for connection in shown
            for model in connection.models
            if model.price(at) is not None
        ]
        return wire.Models(data=rows)


def _route(found: tuple[Connection, Model], wire_name: str, kind: Kind, at: int) -> Route:
    connection, model = found
    if wire_name not in connection.kind.paths or model.facts.kind != kind:
        ways = [way.replace("_", " ") for way in connection.kind.paths]
        does = (
            f"it speaks {', '.join(ways)}"
            if model.facts.kind == kind
            else f"it is for {model.facts.kind}"
        )
        raise AlcoveError(
            "invalid", f"{model.id} is not called this way: {does}", reason="wire_mismatch"
        )
    price = model.price(at)
    if price is None:
        raise AlcoveError("invalid", f"{model.id} has no price", reason="model_not_priced")
    return Route(connection, model, price)


def _default(live: Sequence[Connection], kind: Kind) -> tuple[Connection, Model] | None:
    """Chat: the first connection's default. Embeddings: the platform's own, so that vectors stay comparable."""
    for connection in live:
        if kind == "chat":
            model = connection.default_chat()
        elif connection.kind.name == "local-embeddings":
            model = next(iter(connection.models), None)
        else:
            model = None
        if model is not None:
            return connection, model
    return None


def _named(live: Sequence[Connection], name: str) -> tuple[Connection, Model] | None:
    """By canonical id first, so that no connection can stand in for another; then by a model's own name."""
    wanted = folded(name)
    owner, _, own = wanted.partition("/")
    for connection in live:
        if connection.id == owner and own in connection.by_name:
            return connection, connection.by_name[own]
    for connection in live:
        if wanted in connection.by_name:
            return connection, connection.by_name[wanted]
    return None


def _wire(connection: Connection, kind: Kind) -> Shape:
    """The wire that an agent should speak to a model there."""
    if kind != "chat" or "openai_chat" in connection.kind.paths:
        return "openai"
    return "anthropic" if "anthropic_messages" in connection.kind.paths else "gemini"


def _row(connection: Connection, model: Model, default: bool) -> wire.Model:
    facts = model.facts
    return wire.Model(
        id=model.id,
        owned_by=connection.id,
        alcove=wire.ModelFacts(
            default=default,
            kind=facts.kind,
            wire=_wire(connection, facts.kind),
            tools=facts.tools,
            context_tokens=facts.context_tokens,
            max_output_tokens=facts.max_output_tokens,
            demo=facts.demo,
            profile=wire.Profile.model_validate(facts.profile) if facts.profile else None,
        ),
    )
