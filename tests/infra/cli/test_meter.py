"""Verbs of the meter that a person calls: they say what they did by their exit status."""

import asyncio
from pathlib import Path

import pytest

from infra.cli import home, meter
from infra.kit.db import Database, sql
from metering_proxy.providers import price_file
from tests.databases import to_head


@pytest.mark.thorough
def test_prices_are_compared_in_the_meters_own_process(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "prices.toml"
    copy.write_text(price_file.FILE.read_text())
    chosen = {"--file": [str(copy)], "--add": ["openai/no-such-model"]}
    assert meter.price_import(["openai/gpt-4o-mini"], write=True, chosen=chosen) == 1
    assert "! openai/no-such-model: not in the source" in capfd.readouterr().out
    assert copy.read_text() == price_file.FILE.read_text()


def test_ledger_that_never_was_cannot_be_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALCOVE_DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(home.Trouble, match="nothing has run"):
        meter.ledger_verify()


@pytest.mark.thorough
def test_ledger_is_proven_and_a_wrong_sum_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALCOVE_DATA_DIR", str(tmp_path / "data"))
    home.open_home(home.location()).close()

    async def make(*statements: str) -> None:
        db = Database(f"sqlite:///{tmp_path}/data/meter.db")
        await to_head(db, "metering_proxy")
        async with db.transaction() as tx:
            for statement in statements:
                await tx.execute(sql(statement))
        await db.close()

    asyncio.run(make())
    assert meter.ledger_verify() == 0
    assert '"whole": true' in capfd.readouterr().out
    asyncio.run(make("INSERT INTO account_window VALUES ('a', 'charge_month', 0, 7, 0)"))
    assert meter.ledger_verify() == 1
    assert '"drift_nanos": 7' in capfd.readouterr().out
