"""Published prices against the reviewed file: what is new is told and added, what looks wrong is not."""

import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from metering_proxy import price_import
from metering_proxy.price_import import diff, editing, source
from metering_proxy.providers import price_file

_TODAY = date(2026, 6, 1)
_FILE = """# Reviewed by hand.
[[model]]
provider = "openai"
id = "m"
context_tokens = 1_000
max_output_tokens = 100

[[model.price]]
from = 2025-01-01
input = "1.0"
output = "4"
tiers = { flex = "1/2" }

# What this one is for.
[[model]]
provider = "anthropic"
id = "n"
context_tokens = 1_000
max_output_tokens = 100

[[model.price]]
from = 2025-01-01
input = "2"
output = "8"
long_context = { above = 200, input = "3", output = "9", cache_read = "1" }
"""


def _item(name: str, *offers: tuple[date | None, dict[str, Any]], context: int | None = 9) -> Any:
    """A model as the package describes it."""
    prices = [
        SimpleNamespace(
            constraint=None if since is None else SimpleNamespace(start_date=since),
            prices=SimpleNamespace(**values),
        )
        for since, values in offers
    ]
    return SimpleNamespace(
        id=name, prices=prices, context_window=context, is_match=lambda asked: asked == f"{name}-x"
    )


def _source(*openai: Any, anthropic: Any = None) -> source.Source:
    found = [SimpleNamespace(id="openai", models=openai)]
    found += [SimpleNamespace(id="anthropic", models=[anthropic])] if anthropic else []
    return source.Source(found)


def _usd(**amounts: str) -> dict[str, Decimal]:
    return {f"{name}_mtok": Decimal(amount) for name, amount in amounts.items()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A price file of two models."""
    path = tmp_path / "prices.toml"
    path.write_text(_FILE)
    return path


def _compare(file: Path, prices: diff.Prices, **more: Any) -> diff.Report:
    return diff.compare(editing.read(file), prices, today=_TODAY, **more)


def test_same_price_written_otherwise_is_no_change(file: Path) -> None:
    report = _compare(file, _source(_item("m", (None, _usd(input="1", output="4.00")))))
    assert (report.rows, report.refused, report.same) == ([], [], 1)
    assert "anthropic/n: not in the source" in report.text()


def test_new_price_is_a_new_row_that_keeps_what_the_source_does_not_say(file: Path) -> None:
    report = _compare(file, _source(_item("m", (None, _usd(input="1.5", output="4")))))
    assert report.changed == ["openai/m from 2026-06-01: input 1.0 → 1.5 (+50%)"]
    editing.add(file, report.rows)
    assert file.read_text().startswith(_FILE.partition("# What")[0].rstrip())
    assert "# What this one is for.\n[[model]]" in file.read_text()
    [model] = price_file.load(file)["openai"]
    old, new = model.prices
    assert (old.rates.input, new.rates.input) == (1_000_000_000, 1_500_000_000)
    assert new.tiers == old.tiers
    assert new.id == "openai/m@2026-06-01"


def test_announced_prices_begin_on_their_days(file: Path) -> None:
    item = _item(
        "m",
        (None, _usd(input="1", output="4")),
        (date(2026, 5, 1), _usd(input="2", output="4")),
        (date(2026, 9, 1), _usd(input="3", output="4")),
    )
    report = _compare(file, _source(item))
    assert [row.price["from"] for row in report.rows] == [date(2026, 5, 1), date(2026, 9, 1)]
    editing.add(file, report.rows)
    assert _compare(file, _source(item)).rows == []


def test_price_for_some_hours_of_the_day_is_the_dearest_of_them(file: Path) -> None:
    item = _item("m", (None, _usd(input="1", output="4")), (None, _usd(input="2", output="3")))
    [row] = _compare(file, _source(item)).rows
    assert (row.price["input"], row.price["output"]) == ("2", "4")


def test_long_context_takes_what_is_published_and_keeps_the_rest(file: Path) -> None:
    tiered = SimpleNamespace(base=Decimal(2), tiers=[SimpleNamespace(start=200, price=Decimal(4))])
    item = _item("n", (None, {"input_mtok": tiered, "output_mtok": Decimal(8)}))
    [row] = _compare(file, _source(anthropic=item)).rows
    assert row.price["long_context"] == {
        "above": 200, "input": "4", "output": "9", "cache_read": "1"
    }  # fmt: skip
    editing.add(file, [row])
    [model] = price_file.load(file)["anthropic"]
    assert model.prices[-1].rates_for(201).input == 4_000_000_000


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (_usd(input="-1", output="4"), "is no price"),
        (_usd(input="NaN", output="4"), "is no price"),
        (_usd(input="1.0000000001", output="4"), "finer than a nano-dollar"),
        (_usd(input="9000000", output="4"), "is no price"),
    ],
)
def test_amount_that_is_no_price_is_refused_whoever_accepts_it(
    file: Path, values: dict[str, Decimal], words: str
) -> None:
    report = _compare(file, _source(_item("m", (None, values))), accept=["openai/m"])
    assert report.rows == []
    assert words in report.refused[0]


@pytest.mark.parametrize("amount", ["0", "0.3", "3.5", "100"])
def test_unlikely_change_needs_to_be_accepted(file: Path, amount: str) -> None:
    prices = _source(_item("m", (None, _usd(input=amount, output="4"))))
    report = _compare(file, prices)
    assert report.rows == []
    assert "--accept" in report.refused[0]
    assert len(_compare(file, prices, accept=["openai/m"]).rows) == 1


def test_row_of_a_day_that_has_one_is_never_changed(file: Path) -> None:
    prices = _source(_item("m", (None, _usd(input="2", output="4"))))
    editing.add(file, _compare(file, prices).rows)
    other = _source(_item("m", (None, _usd(input="2.5", output="4"))))
    report = _compare(file, other)
    assert report.rows == []
    assert "never changed" in report.refused[0]


def test_new_model_is_added_when_it_is_named(file: Path) -> None:
    prices = _source(
        _item("q", (None, _usd(input="5", output="6", cache_read="0.5"))),
        _item("e", (None, _usd(input="0.02")), context=100),
        _item("z", (None, _usd(input="5", output="6")), context=None),
    )
    report = _compare(file, prices, add=["openai/q", "openai/e"])
    editing.add(file, report.rows)
    added = {model.facts.id: model for model in price_file.load(file)["openai"]}
    assert added["q"].prices[0].rates.cache_read == 500_000_000
    assert added["e"].facts.kind == "embedding"
    refused = _compare(file, prices, add=["openai/z", "openai/nobody", "openai/m"]).refused
    assert len(refused) == 3


def test_file_that_the_meter_could_not_read_is_never_written(file: Path) -> None:
    row = diff.Row("openai/m", {"from": _TODAY, "input": "minus one", "output": "1"})
    with pytest.raises(ValueError, match="minus one"):
        editing.add(file, [row])
    assert file.read_text() == _FILE
    assert list(file.parent.iterdir()) == [file]


def test_command_tells_and_writes_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prices.toml"
    shutil.copy(price_file.FILE, path)
    before = path.read_text()
    model = "anthropic/claude-haiku-4-5"
    assert price_import.run([model, "--file", str(path)]) == 0
    assert capsys.readouterr().out == "= 1 unchanged, 0 to add, 0 refused\n"
    arguments = ["--file", str(path), "--add", "anthropic/claude-opus-4-1", model]
    assert price_import.run(arguments) == 0
    assert path.read_text() == before
    assert price_import.run([*arguments, "--write"]) == 0
    assert path.read_text().startswith(before.rstrip())
    models = {item.facts.id: item for item in price_file.load(path)["anthropic"]}
    rates = models["claude-opus-4-1"].prices[0].rates
    assert (rates.input, rates.output, rates.write_1h) == (
        15_000_000_000, 75_000_000_000, 30_000_000_000
    )  # fmt: skip
    assert price_import.run([*arguments, "--write"]) == 1


def test_long_request_pays_for_its_searches_too() -> None:
    [model] = [m for m in price_file.load()["anthropic"] if m.facts.id == "claude-sonnet-4-5"]
    rates = model.prices[-1].rates_for(200_001)
    assert (rates.input, rates.web_search) == (6_000_000_000, 10_000_000_000)
