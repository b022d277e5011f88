"""Reports from the ledger, its entries as a file, one call in detail, and prices made good."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from metering_proxy import exports, wire
from metering_proxy.api.paths import Moment, Name, Whose
from metering_proxy.exports import Exports
from metering_proxy.repricing import Repricing
from metering_proxy.requests import Requests
from metering_proxy.usage import Reports


def router(
    reports: Reports, entries: Exports, requests: Requests, repricing: Repricing
) -> APIRouter:
    """The routes."""
    api = APIRouter()

    @api.get("/usage")
    async def usage(
        from_at: Moment,
        to_at: Moment,
        tenant: Whose = None,
        zone: Annotated[str, Query(max_length=64)] = "UTC",
        group: Annotated[str, Query(max_length=100)] = "",
    ) -> wire.Usage:
        return await reports.usage(
            account=tenant, from_at=from_at, to_at=to_at, zone=zone, group=_names(group)
        )

    @api.get("/usage/export", response_class=StreamingResponse)
    async def export(
        from_at: Moment, to_at: Moment, tenant: Whose = None, format: exports.Format = "csv"
    ) -> StreamingResponse:
        pages = entries.entries(account=tenant, from_at=from_at, to_at=to_at, form=format)
        return StreamingResponse(
            pages,
            media_type=exports.TYPES[format],
            headers={"content-disposition": f'attachment; filename="entries.{format}"'},
        )

    @api.post("/tenants/query")
    async def query(asked: wire.TenantsQuery) -> wire.TenantsPage:
        return await reports.tenants(asked)

    @api.get("/requests")
    async def listed(
        tenant: Whose = None,
        before: Annotated[
            str | None, Query(pattern=r"^[0-9]{1,16}\.[A-Za-z0-9_.:-]{1,64}$")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        failed: bool = False,
    ) -> wire.RequestRows:
        return await requests.listed(tenant, _place(before), limit, failed=failed)

    @api.get("/requests/{request}")
    async def detail(request: Name) -> wire.RequestDetail:
        return await requests.detail(request)

    @api.post("/repricings")
    async def reprice(asked: wire.RepriceRequest) -> wire.Reprice:
        return await repricing.reprice(asked)

    return api


def _place(before: str | None) -> tuple[int, str] | None:
    if before is None:
        return None
    at, _, request = before.partition(".")
    return int(at), request


def _names(text: str) -> Sequence[str]:
    return [name for name in text.split(",") if name]
