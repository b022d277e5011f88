"""What the meter tells of itself: counted and traced, without a tenant's name, a text or a key."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from infra.kit.client import ServiceClient
from infra.kit.db import sql
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing
from metering_proxy.pricing import Usage
from metering_proxy.telemetry import Telemetry, describe
from tests import scripted as s
from tests.metering_proxy.collector import a_collector
from tests.metering_proxy.house import MODEL, SECRET, House, Tenant, a_house
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


# Metering facts 1.7: the names, and the labels that each has.
_NAMES = {
    "meter_requests_total": {"wire", "provider", "model", "outcome"},
    "meter_tokens_total": {"kind"},
    "meter_cost_nanousd_total": {"provider", "model", "payer"},
    "meter_overhead_seconds": set(),
    "meter_ttft_seconds": set(),
    "meter_reservations_open": set(),
    "meter_reserved_nanousd": set(),
    "meter_settle_estimated_total": {"reason"},
    "meter_unpriced_total": set(),
    "meter_ledger_drift_nanousd": set(),
    "meter_stream_parse_errors_total": set(),
}


async def test_every_promised_metric_is_there_by_its_name_and_labels(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").without_usage())
    await tenant.chat(stream=True)
    await house.entries(tenant)
    families = {family.name: family for family in house.meter.metrics.registry.collect()}
    for name, labels in _NAMES.items():
        family = families[name.removesuffix("_total")]
        samples = [one for one in family.samples if not one.name.endswith("_created")]
        own = [set(one.labels) - {"le"} for one in samples]
        assert own, name
        assert all(found == labels for found in own), name
    for family in families.values():
        assert not any("tenant" in one.labels or "account" in one.labels for one in family.samples)


@pytest.mark.thorough
async def test_span_of_a_call_arrives_with_all_that_the_convention_names(
    tmp_path: Path, scripted: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    with a_collector() as (url, spans):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db") as house:
            await house.connect(scripted)
            tenant = await house.tenant()
            scripted.then(reply=s.text(_CANARY).using(5, 7, cache_read=20))
            scripted.then(reply=s.error(500))
            body = {"model": MODEL, "messages": [{"role": "user", "content": _CANARY}]}
            trace = f"00-{'-'.join(asked)}-01"
            await tenant.post("/v1/chat/completions", body, traceparent=trace)
            await tenant.post("/v1/chat/completions", body)
            await house.entries(tenant, 2)
    calls = [span for span in spans if span.name == f"chat scripted/{MODEL}"]
    good, bad = ({one.key: one.value for one in span.attributes} for span in calls)
    assert {name: value.string_value or value.int_value for name, value in good.items()} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": f"scripted/{MODEL}",
        "gen_ai.response.model": MODEL,
        "gen_ai.usage.input_tokens": 25,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.usage.output_tokens": 7,
    }
    assert bad["error.type"].string_value == "provider_error"
    assert (calls[0].trace_id.hex(), calls[0].parent_span_id.hex()) == asked
    assert _CANARY not in str(spans)
    assert tenant.key not in str(spans)
    assert tenant.id not in str(calls)


@pytest.mark.thorough
async def test_proof_of_the_ledger_is_a_job_and_a_metric_and_a_command(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    registry = house.meter.metrics.registry

    def runs(outcome: str) -> float:
        labels = {"job": "verify", "outcome": outcome}
        return registry.get_sample_value("meter_job_runs_total", labels) or 0.0

    job = house.meter.jobs.named("verify")
    scripted.then(reply=s.text("x").using(10, 5))
    await tenant.chat()
    await house.entries(tenant)
    await house.meter.jobs.once(job)
    assert registry.get_sample_value("meter_ledger_drift_nanousd") == 0
    failed = runs("failed")
    async with house.db.transaction() as tx:
        await tx.execute(
            sql("UPDATE account_window SET spent = spent + 7 WHERE kind = 'charge_month'")
        )
    await house.meter.jobs.once(job)
    assert registry.get_sample_value("meter_ledger_drift_nanousd") == 7
    assert runs("failed") == failed + 1
    environment = {
        **os.environ,
        "ALCOVE_DEPLOYMENT": "test",
        "ALCOVE_SERVICE_SECRET": SECRET,
        "ALCOVE_SEALING_KEY": "5a" * 32,
        "ALCOVE_METER_DATABASE_URL": house.meter.settings.database_url,
        "ALCOVE_METER_LISTEN": house.meter.settings.listen,
        "ALCOVE_SOCKETS_DIR": str(house.root / "s"),
    }
    command = [sys.executable, "-m", "metering_proxy", "verify"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["drift_nanos"] == 7


def test_no_span_is_made_when_tracing_is_off() -> None:
    telemetry = Telemetry(Metrics("meter"), Tracing("meter"))
    with telemetry.span("chat", "p", "m", None) as span:
        assert span is None
