"""What the meter tells of itself: counted and traced, without a tenant's name, a text or a key."""

import json
import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from infra.kit.client import ServiceClient
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing
from metering_proxy.pricing import Usage
from metering_proxy.telemetry import Telemetry, describe
from tests import scripted as s
from tests.metering_proxy.house import SECRET, House, Tenant
from tests.scripted import ScriptedProvider

_CANARY = "canary-7f3a-text-of-a-person"


async def test_calls_are_counted_without_naming_a_tenant(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(10, 5, cache_read=3))
    await tenant.chat(stream=True)
    await tenant.chat(model="nothing")
    await house.entries(tenant)
    body, _ = _render(house)
    page = body.decode()
    labels = (
        'model="scripted/scripted-model",outcome="complete",provider="scripted",wire="openai_chat"'
    )
    assert f"meter_requests_total{{{labels}}} 1.0" in page
    assert 'meter_tokens_total{kind="input"} 10.0' in page
    assert 'meter_tokens_total{kind="cache_read"} 3.0' in page
    assert 'meter_refusals_total{reason="model_unknown",wire="openai_chat"} 1.0' in page
    assert "meter_reservations_open 0.0" in page
    assert "meter_reserved_nanousd 0.0" in page
    assert tenant.id not in page
    service = ServiceClient(house.meter.settings.listen, SECRET, name="meter")
    assert await service.call("GET", "/readyz") == {"status": "ok"}
    await service.close()


def _render(house: House) -> tuple[bytes, str]:
    return house.meter.metrics.render()


async def test_logs_hold_neither_text_nor_keys(
    house: House,
    tenant: Tenant,
    scripted: ScriptedProvider,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    scripted.then(reply=s.text(_CANARY))
    await tenant.chat(_CANARY, stream=True)
    scripted.then(reply=s.text(_CANARY).dropped_after(200))
    await tenant.chat(_CANARY, stream=True)
    await tenant.post("/v1/chat/completions", {"model": _CANARY}, key=f"alcove-{_CANARY}")
    await house.entries(tenant, 2)
    told = [
        f"{r.getMessage()} {vars(r)}" for r in caplog.records if not r.name.startswith("asyncio")
    ]
    assert any("outcome" in line for line in told)
    for line in told:
        assert _CANARY not in line
        assert tenant.key not in line
        assert "sk-provider-key" not in line


def test_span_carries_the_names_of_the_convention() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("chat m") as span:
        describe(span, Usage(input=5, cache_read=20, output=7), "m-2", "cut")
    attributes = json.loads(exporter.get_finished_spans()[0].to_json())["attributes"]
    assert attributes == {
        "gen_ai.usage.input_tokens": 25,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.response.model": "m-2",
        "error.type": "cut",
    }
    provider.shutdown()


def test_no_span_is_made_when_tracing_is_off() -> None:
    telemetry = Telemetry(Metrics("meter"), Tracing("meter"))
    with telemetry.span("chat", "p", "m", None) as span:
        assert span is None
