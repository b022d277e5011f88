"""Agents' spans on their way to the collector: once each, and under no name but the agent's."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI, Request

from infra.kit import service
from tests.spawner.house import House, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough


def span(called: str, **more: object) -> dict[str, object]:
    return {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "parentSpanId": "",
        "name": called,
        "kind": 1,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [{"key": "turn", "value": {"stringValue": "t"}}],
        "status": {"code": 1},
        **more,
    }


def told(last: int, *spans: dict[str, object]) -> str:
    claimed = {"attributes": [{"key": "service.name", "value": {"stringValue": "gateway"}}]}
    batch = {"resource": claimed, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}
    return json.dumps({"last": last, "resourceSpans": [batch]})


@pytest.fixture
async def collector() -> AsyncIterator[tuple[str, list[Any]]]:
    """An OTLP collector that keeps what agents' spans arrive."""
    app, kept = FastAPI(openapi_url=None), list[Any]()

    @app.post("/v1/traces")
    async def traces(request: Request) -> dict[str, str]:
        if request.headers["content-type"] == "application/json":
            kept.append(await request.json())
        return {}

    async with service.serving(app, "http://127.0.0.1:0", grace_s=1) as url:
        yield url, kept


async def test_spans_arrive_as_the_agents_whoever_they_claim_to_be(
    home: House, collector: tuple[str, list[Any]]
) -> None:
    url, kept = collector
    who = tenant()
    (home.data(who) / "spans.json").write_text(told(7, span("turn"), span("model")))
    async with home.work(otlp_endpoint=url) as at:
        await at.ready(who)
        await until(lambda: kept, what="the spans")
    (resource,) = kept[0]["resourceSpans"]
    (attribute,) = resource["resource"]["attributes"]
    assert attribute == {"key": "service.name", "value": {"stringValue": "agent"}}
    spans = resource["scopeSpans"][0]["spans"]
    assert [one["name"] for one in spans] == ["turn", "model"]
    assert spans[0]["attributes"] == [{"key": "turn", "value": {"stringValue": "t"}}]


@pytest.mark.parametrize(
    "nonsense", [{"traceId": "../x"}, {"name": "n" * 5000}, {"endTimeUnixNano": "soon"}]
)
async def test_spans_are_dropped_when_they_are_of_no_known_form(
    home: House, collector: tuple[str, list[Any]], nonsense: dict[str, object]
) -> None:
    url, kept = collector
    bad, good = tenant(), tenant()
    (home.data(bad) / "spans.json").write_text(told(1, span("bad", **nonsense)))
    (home.data(good) / "spans.json").write_text(told(1, span("good")))
    async with home.work(otlp_endpoint=url) as at:
        await at.ready(bad)
        await at.ready(good)
        await until(lambda: kept, what="the neighbour's spans")
    assert "bad" not in json.dumps(kept)
