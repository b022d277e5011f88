"""The door of a tenant's socket, and of people's programs: whose key it is, and refusals. Calls are calls.py's.

Any path that wires/paths.py does not name does not exist: an upstream path without a meter would be free.
"""

import logging
import re

from infra.kit import ids, log
from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy.egress.egress import Egress
from metering_proxy.keys import Key, Keys
from metering_proxy.providers.catalog import Catalog
from metering_proxy.refusals import refusal
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side import headers
from metering_proxy.tenant_side.calls import Calls
from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.tenants import Tenants
from metering_proxy.wires import paths

_log = logging.getLogger(__name__)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_AUDIT_EVERY_MS = 60_000


class Door:
    """What stands behind every tenant's socket."""

    def __init__(
        self,
        keys: Keys,
        tenants: Tenants,
        catalog: Catalog,
        calls: Calls,
        egress: Egress,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._keys, self._catalog, self._calls, self._egress = keys, catalog, calls, egress
        self._tenants, self._telemetry, self._clock = tenants, telemetry, clock
        self._audited_at: dict[str, int] = {}

    async def answer(self, exchange: Exchange) -> None:
        """Answers one request."""
        call_id = ids.ulid()
        given = exchange.header("x-request-id") or ""
        request_id = given if _REQUEST_ID.fullmatch(given) else call_id
        with log.bound(request_id=request_id, call=call_id, tenant=exchange.tenant):
            try:
                await self._answer(exchange, call_id)
            except AlcoveError as error:
                await self._refuse(exchange, error, call_id)
            except Exception:
                _log.exception("call failed")
                await self._refuse(exchange, _internal(), call_id)

    async def _answer(self, exchange: Exchange, call_id: str) -> None:
        if self._egress.takes(exchange) and not exchange.at_the_door_of_programs:
            key = await self._authenticate(exchange)
            await self._egress.answer(exchange, key.tenant, headers.keys(exchange).pop(), call_id)
            return
        found = paths.find(exchange.path)
        listing = exchange.path == "/v1/models"
        if found is None and not listing:
            raise AlcoveError(
                "not_found",
                "there is nothing at this path: OpenAI's libraries want a base URL with /v1, others one without",
                reason="no_such_path",
            )
        if exchange.method != ("GET" if listing else "POST"):
            raise AlcoveError(
                "not_found", "this path is not called that way", reason="no_such_path"
            )
        key = await self._authenticate(exchange)
        if found is None:
            await self._list(exchange, key)
        else:
            await self._calls.answer(exchange, *found, key, call_id)

    async def _authenticate(self, exchange: Exchange) -> Key:
        """The live key of this listener's tenant that the request shows. Raises `unauthorized`.

        At the door of programs: a key that a person holds, and its tenant is the exchange's from here on.
        """
        shown = headers.keys(exchange)
        if not shown:
            raise AlcoveError(
                "unauthorized",
                "a key is needed, as Authorization: Bearer, x-api-key, x-goog-api-key or api-key",
                reason="no_key",
            )
        if len(shown) > 1:
            raise AlcoveError("unauthorized", "two different keys were shown", reason="two_keys")
        key = self._keys.find(shown.pop())
        if key is not None and exchange.at_the_door_of_programs and key.of_a_person:
            exchange.tenant = key.tenant
            log.bind(tenant=key.tenant)
        if key is not None and key.tenant == exchange.tenant:
            exchange.trust()
            self._keys.used(key)
            return key
        if key is not None and exchange.tenant:
            await self._audit(exchange.tenant, key)
        raise AlcoveError(
            "unauthorized",
            "this key does not open this door: it is mistyped, has ended, or is for another",
            reason="key",
        )

    async def _audit(self, tenant: str, key: Key) -> None:
        """A live key at a stranger's listener: written down, at most once a minute for a listener."""
        now_at = self._clock.now_at()
        if now_at - self._audited_at.get(tenant, 0) < _AUDIT_EVERY_MS:
            return
        self._audited_at[tenant] = now_at
        _log.warning("stranger's key", extra={"key_of": key.tenant})
        await self._keys.audit_stranger(tenant, key)

    async def _list(self, exchange: Exchange, key: Key) -> None:
        """The models that this key may call. Raises `forbidden` (reasons `suspended`, `deleted`)."""
        standing = self._tenants.standing(key.tenant)
        standing.admit()
        models = await self._catalog.listing(self._clock.now_at())
        models.data = [
            model
            for model in models.data
            if standing.plan.offers(model.id) and key.offers(model.id)
        ]
        body = models.model_dump_json().encode()
        await exchange.respond(200, [("content-type", "application/json")], body)

    async def _refuse(self, exchange: Exchange, error: AlcoveError, call_id: str) -> None:
        """Answers with a refusal, or cuts an answer that had begun."""
        found = paths.find(exchange.path)
        out = "egress" if self._egress.takes(exchange) else "none"
        name = found[0].name if found else out
        reason = error.reason or error.code
        self._telemetry.refusals.labels(name, reason).inc()
        told = {"wire": name, "reason": reason, "status": error.status}
        _log.info("refused", extra=told | self._egress.described(exchange, error))
        if exchange.started:
            raise error  # the server cuts the answer, so that nobody takes it for a whole one
        answer = refusal(error, paths.shape(exchange.path), call_id, self._clock.now_at())
        await exchange.respond(answer.status, answer.headers, answer.body)


def _internal() -> AlcoveError:
    return AlcoveError("internal", "something went wrong on our side; it has been logged")
