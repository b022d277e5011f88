"""Model servers of this machine: the two that the deployment starts, and an Ollama or LM Studio on loopback.

Asked when somebody needs the answer and it is old; a stale answer is given while a new one is fetched.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, RelayRequest
from metering_proxy.pricing import Price, Rates
from metering_proxy.providers.connections import Connection, Model, offered
from metering_proxy.providers.dialling import Dialling
from metering_proxy.providers.kinds import kinds
from metering_proxy.providers.price_file import KnownModels, ModelFacts

_log = logging.getLogger(__name__)
_TIMEOUT_S = 0.5
_MOST_BYTES = 1 << 20
_FRESH_S = 5.0
_USABLE_S = 120.0
# By port: connection, kind.
_NAMES = {11434: ("ollama", "ollama"), 1234: ("lm-studio", "lm_studio")}


class Detection:
    """What answers on this machine right now."""

    def __init__(
        self,
        known: KnownModels,
        dialling: Dialling,
        *,
        model_url: str | None,
        embeddings_url: str | None,
        loopback: Sequence[str],
    ) -> None:
        self._known, self._dialling = known, dialling
        self._built_in = [
            (kind, url)
            for kind, url in (("local", model_url), ("local-embeddings", embeddings_url))
            if url
        ]
        self._loopback = loopback
        self._found: tuple[Connection, ...] = ()
        self._asked_s = float("-inf")
        self._refresh: asyncio.Task[None] | None = None

    async def connections(self) -> tuple[Connection, ...]:
        """What answered last, people's own servers before those of the deployment.

        Asked anew, in the background where the last answer can still be used.
        """
        age_s = time.monotonic() - self._asked_s
        if age_s > _FRESH_S and (self._refresh is None or self._refresh.done()):
            self._refresh = asyncio.create_task(self.refresh(), name="provider-detection")
        if (age_s > _USABLE_S or not self._found) and self._refresh is not None:
            await asyncio.shield(self._refresh)
        return self._found

    def use(self, known: KnownModels) -> None:
        """From the next look on, models and prices are those of `known`."""
        self._known = known
        self._asked_s = float("-inf")

    async def refresh(self) -> None:
        """Asks every server now."""
        asked = [
            *(self._ask_loopback(url) for url in self._loopback),
            *(self._ask_built_in(kind, url) for kind, url in self._built_in),
        ]
        answers = await asyncio.gather(*asked)
        self._found = tuple(found for found in answers if found is not None)
        self._asked_s = time.monotonic()

    async def close(self) -> None:
        """Stops asking."""
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.gather(self._refresh, return_exceptions=True)

    async def _ask_built_in(self, name: str, url: str) -> Connection | None:
        if await self._get(url, "/health") is None:
            return None
        kind = kinds()[name]
        return Connection(
            id=name,
            kind=kind,
            name=kind.title,
            base_url=url,
            models=offered(name, kind, self._known, ()),
            local=True,
            demo=name == "local",
        )

    async def _ask_loopback(self, url: str) -> Connection | None:
        listed = await self._get(url, "/v1/models")
        try:
            names = [item["id"] for item in (listed or {})["data"]]
        except (KeyError, TypeError):
            return None
        port = urlsplit(url).port or 0
        connection, kind = _NAMES.get(port, (f"loopback-{port}", "openai_compatible"))
        models = tuple(_free(connection, name) for name in names if isinstance(name, str))
        if not models:
            return None
        return Connection(
            id=connection,
            kind=kinds()[kind],
            name=kinds()[kind].title if port in _NAMES else f"Local server on port {port}",
            base_url=f"{url.rstrip('/')}/v1",
            models=models,
            local=True,
        )

    async def _get(self, url: str, path: str) -> Any:
        """The JSON there, `{}` for another body of a 200, None where nothing good answers in time."""
        async with ProtocolUpstream(url, limit=1, dial=self._dialling.dial) as upstream:
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    body = await _body(upstream, path)
            except (AlcoveError, TimeoutError):
                return None
        try:
            return None if body is None else orjson.loads(body)
        except orjson.JSONDecodeError:
            return {}


def _free(connection: str, name: str) -> Model:
    """A model that runs on the operator's own machine: its price is zero, and said to be."""
    canonical = f"{connection}/{name}"
    kind = "embedding" if "embed" in name.lower() else "chat"
    facts = ModelFacts(id=name, kind=kind)  # type: ignore[arg-type]
    return Model(canonical, connection, facts, (Price(f"{canonical}@local", 0, Rates(0)),))


async def _body(upstream: ProtocolUpstream, path: str) -> bytes | None:
    """The body of a 200, or its beginning where it is very long."""
    response = await upstream.open(RelayRequest("GET", path, [("accept", "application/json")]))
    try:
        if response.status != 200:
            return None
        body = b""
        async for chunk in response.chunks():
            body += chunk
            if len(body) > _MOST_BYTES:
                break
        return body
    finally:
        await response.close()
