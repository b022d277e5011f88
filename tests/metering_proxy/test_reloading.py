"""Plans and prices are taken up while the meter runs; a mistake in them changes nothing, no stream is cut."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metering_proxy import plans, wire
from metering_proxy.providers import price_file
from tests import scripted as s
from tests.metering_proxy.house import House, a_house
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.thorough

_PLANS = """
zone = "UTC"
[[plan]]
name = "free"
title = "Free"
charge_month = "1.00"
requests_minute = 100
"""


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[House]:
    """A meter with plan and price files of its own."""
    files = {"plans_file": tmp_path / "plans.toml", "prices_file": tmp_path / "prices.toml"}
    files["plans_file"].write_text(_PLANS)
    shutil.copy(price_file.FILE, files["prices_file"])
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/meter.db", **files) as house:
        yield house


async def _title_is(house: House, title: str) -> bool:
    return (await house.client.plans())[0].title == title


async def test_new_plans_hold_for_the_next_call_and_the_running_one_keeps_its_own(
    own: House, scripted: ScriptedProvider
) -> None:
    gate = s.Gate()
    await own.connect(scripted)
    tenant = await own.tenant()
    scripted.then(reply=s.text("still", gate, "here").using(100, 10))
    running = asyncio.create_task(tenant.chat(stream=True))
    await gate.reached()
    changed = _PLANS.replace('"1.00"', '"0"').replace('"Free"', '"Freer"')
    (own.root / "plans.toml").write_text(f"{changed}markup_ppm = 500_000\n")
    await until(lambda: _title_is(own, "Freer"))
    assert (await tenant.chat()).status == 402
    gate.open()
    assert (await running).body.endswith(b"data: [DONE]\n\n")
    [entry] = await own.entries(tenant)
    assert entry["charge_nanos"] == entry["cost_nanos"] == 120_000
    before, now = (plans.load(own.root / "plans.toml").by_name["free"].stamp, entry["plan"])
    assert before != now
    assert now.startswith("free@")


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "this is no TOML",
        _PLANS.replace('"free"', '"other"'),
        _PLANS.replace("100", "-1"),
        _PLANS.replace("100", "true"),
        _PLANS.replace("100", '"many"'),
        _PLANS.replace('"1.00"', '"a dollar"'),
        _PLANS.replace('"UTC"', '"Mars/Olympus"'),
        _PLANS + 'anchor = "sometimes"\n',
        _PLANS + "requests_week = 3\n",
        _PLANS + _PLANS.partition('"UTC"')[2],
        _PLANS.replace('"UTC"', '"right/UTC"'),
        _PLANS.replace('"UTC"', '"localtime"'),
        _PLANS.replace('"UTC"', "5"),
        _PLANS.replace('"Free"', "5"),
        _PLANS.replace('"Free"', '" "'),
        _PLANS.replace("100", "9223372036854775808"),
        _PLANS.replace("100", "1e400"),
        _PLANS.replace("100", "nan"),
        _PLANS.replace('"1.00"', '"1e3"'),
        _PLANS.replace('"1.00"', '"-1"'),
        _PLANS.replace('"1.00"', '"NaN"'),
        _PLANS + "markup_ppm = 1000000001\n",
        _PLANS + "concurrent = 9007199254740993\n",
        _PLANS + '[[plan]]\nname = 5\ntitle = "x"\n',
        _PLANS + '[[plan]]\nname = ""\ntitle = "x"\n',
        _PLANS + '[[plan]]\nname = "a b"\ntitle = "x"\n',
        _PLANS + '[[plan]]\nname = "a\\u0000b"\ntitle = "x"\n',
        _PLANS + f'[[plan]]\nname = "{"a" * 33}"\ntitle = "x"\n',
        "\ufeff" + _PLANS,
    ],
)
async def test_plans_with_a_mistake_change_nothing(own: House, broken: str) -> None:
    registry = own.meter.metrics.registry
    (own.root / "plans.toml").write_text(broken)

    def refused() -> bool:
        labels = {"file": "plans", "outcome": "refused"}
        return registry.get_sample_value("meter_reloads_total", labels) == 1

    await own.meter.reloading.look()  # a second sooner than by itself
    await until(refused)
    assert await _title_is(own, "Free")
    (own.root / "plans.toml").write_text(_PLANS.replace('"Free"', '"Mended"'))
    await own.meter.reloading.look()
    await until(lambda: _title_is(own, "Mended"))


async def test_new_prices_hold_for_connections_that_stand(own: House) -> None:
    await own.client.create_provider(
        wire.NewProvider(kind="anthropic", name="Anthropic", key="sk-ant-key-1234567")
    )
    name = "anthropic/claude-haiku-4-5"
    file = own.root / "prices.toml"

    async def price() -> int:
        return next(p.input_nanos for p in await own.client.prices() if p.model == name)

    assert await price() == 1_000_000_000
    text = file.read_text()
    head, _, tail = text.partition('id = "claude-haiku-4-5"')
    first, _, rest = tail.partition("[[model]]")
    row = '[[model.price]]\nfrom = 2025-11-01\ninput = "1.5"\noutput = "7"\n\n'
    file.write_text(f'{head}id = "claude-haiku-4-5"{first}{row}[[model]]{rest}')

    async def dearer() -> bool:
        return await price() == 1_500_000_000

    await until(dearer)
    file.write_text(text.replace('input = "1"', 'input = "-1"'))
    registry = own.meter.metrics.registry
    labels = {"file": "prices", "outcome": "refused"}
    await until(lambda: registry.get_sample_value("meter_reloads_total", labels) == 1)
    assert await price() == 1_500_000_000
