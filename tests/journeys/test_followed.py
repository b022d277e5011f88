"""A message is followed through the house: one request id in every log, one trace over all four parts."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from infra.kit import ids, service
from tests import scripted as s
from tests.journeys import evidence
from tests.journeys.house import House
from tests.journeys.person import Person
from tests.waiting import until

pytestmark = pytest.mark.thorough
PARTS = {"gateway", "spawner", "agent", "meter"}
Traces = dict[str, dict[str, set[str]]]


@pytest.fixture
async def traces() -> AsyncIterator[tuple[str, Traces]]:
    """An OTLP collector on loopback: what arrived, as trace id → service → names of spans."""
    app, kept = FastAPI(openapi_url=None), defaultdict[str, Any](lambda: defaultdict(set))

    @app.post("/v1/traces")
    async def take(request: Request) -> dict[str, str]:
        body = await request.body()
        spans = (
            from_json if request.headers["content-type"] == "application/json" else from_protobuf
        )
        for trace, part, name in spans(body):
            kept[trace][part].add(name)
        return {}

    async with service.serving(app, "http://127.0.0.1:0", grace_s=1) as url:
        yield url, kept


def from_json(body: bytes) -> Iterator[tuple[str, str, str]]:
    for resource in json.loads(body)["resourceSpans"]:
        [named] = resource["resource"]["attributes"]
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield span["traceId"], named["value"]["stringValue"], span["name"]


def from_protobuf(body: bytes) -> Iterator[tuple[str, str, str]]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        names = {one.key: one.value.string_value for one in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield span.trace_id.hex(), names["service.name"], span.name


@pytest.fixture
def house_settings(traces: tuple[str, Traces]) -> dict[str, str]:
    """Every service sends its spans to the collector, soon."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": traces[0], "OTEL_BSP_SCHEDULE_DELAY": "200"}


def lines(house: House, part: str, tenant: str) -> list[dict[str, Any]]:
    """The log of a part."""
    path = (
        house.root / "tenants" / ".logs" / f"{tenant}.log"
        if part == "agent"
        else house.root / "logs" / f"{'metering_proxy' if part == 'meter' else part}.log"
    )
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def parts_that_name(house: House, request_id: str, tenant: str) -> set[str]:
    """The parts whose log has a line of this request."""
    return {
        part
        for part in PARTS
        if any(line.get("request_id") == request_id for line in lines(house, part, tenant))
    }


async def test_message_is_followed_through_every_part_when_it_wakes_its_agent(
    house: House, scripted: s.ScriptedProvider, traces: tuple[str, Traces]
) -> None:
    scripted.then(s.last_contains("good morning"), reply=s.text("And to you."))
    async with Person(house.url) as ada:
        await ada.sign_up()
        tenant = await evidence.tenant_of(house, ada.email)
        async with ada.tab() as tab:
            answer = await ada.say("good morning", ids.ulid())
            assert answer["state"] == "waiting"
            await until(lambda: tab.named("RUN_FINISHED"), timeout_s=30)
    [asked] = [
        line
        for line in lines(house, "gateway", tenant)
        if line.get("method") == "POST" and "messages" in line.get("route", "")
    ]
    request_id = asked["request_id"]
    await until(lambda: parts_that_name(house, request_id, tenant) == PARTS, what="four logs")
    [call] = [line for line in lines(house, "meter", tenant) if line["event"] == "call"]
    assert call["request_id"] == request_id
    found = traces[1]
    await until(lambda: any(set(one) == PARTS for one in found.values()), what="one trace of all")
