"""The ledger as a file: every entry once, whole numbers whole, and nothing that a spreadsheet would run."""

import csv
import io
import json
from typing import Any

import pytest
from sqlalchemy import insert

from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy import exports, models
from tests.metering_proxy.house import House

pytestmark = pytest.mark.thorough

_A, _B = "a" * 16, "b" * 16


async def _enter(house: House, *rows: dict[str, Any]) -> None:
    plain = {
        "attempt": 1, "kind": "usage", "account": _A, "at": 5, "started_at": 5, "month_start_at": 0,
        "wire": "openai_chat", "provider": "p", "model": "p/m", "response_model": None,
        "price_id": "p/m@1", "payer": "operator", "outcome": "complete", "estimated": 0,
        "overrun": 0, "input_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0,
        "output_tokens": 2, "parts": '{"input":1,"output":2}', "markup_ppm": 0,
        "cost_nanos": 7, "charge_nanos": 7, "plan": "free@1", "grant_nanos": 0,
    }  # fmt: skip
    async with house.db.transaction() as tx:
        values = [{"request_id": ids.ulid(), **plain, **row} for row in rows]
        await tx.execute(insert(models.entry), values)


async def _file(house: House, form: Any, **asked: Any) -> bytes:
    period = {"from_at": 0, "to_at": 100, **asked}
    return b"".join([part async for part in house.client.export(form=form, **period)])


async def test_every_entry_stands_there_once_in_order_over_many_pages(both: House) -> None:
    many = 2_500  # two pages and a half, where all entries began at three moments
    await _enter(both, *({"started_at": n % 3, "cost_nanos": n} for n in range(many)))
    rows = list(csv.DictReader(io.StringIO((await _file(both, "csv")).decode())))
    assert sorted(int(row["cost_nanos"]) for row in rows) == list(range(many))
    keys = [(int(row["started_at"]), row["request_id"]) for row in rows]
    assert keys == sorted(keys)
    lines = (await _file(both, "jsonl")).splitlines()
    assert [json.loads(line)["request_id"] for line in lines] == [row["request_id"] for row in rows]


async def test_file_holds_each_entry_once_though_more_are_written_while_it_is_read(
    both: House,
) -> None:
    before = [{"request_id": ids.ulid(), "started_at": 50} for _ in range(2_100)]
    await _enter(both, *before)
    found: list[tuple[str, str]] = []
    pages = exports.Exports(both.db).entries(account=None, from_at=0, to_at=100, form="jsonl")
    async for page in pages:
        rows = [json.loads(line) for line in page.splitlines()]
        found += [(row["request_id"], row["kind"]) for row in rows]
        # Before what was read, behind it, and a correction of what was read last.
        late = [{"started_at": at, "request_id": ids.ulid()} for at in (1, 50, 99)]
        last = {"request_id": found[-1][0], "started_at": 50, "kind": f"correction_{len(found)}"}
        await _enter(both, *late, last)
    assert len(set(found)) == len(found) > len(before)
    assert {(row["request_id"], "usage") for row in before} <= set(found)


async def test_file_holds_what_began_in_the_period_and_belongs_to_the_tenant(house: House) -> None:
    await _enter(
        house,
        {"started_at": 9, "cost_nanos": 1},
        {"started_at": 10, "cost_nanos": 2},
        {"started_at": 19, "cost_nanos": 3},
        {"started_at": 20, "cost_nanos": 4},
        {"started_at": 15, "cost_nanos": 5, "account": _B},
    )
    lines = (await _file(house, "jsonl", from_at=10, to_at=20, tenant=_A)).splitlines()
    assert [json.loads(line)["cost_nanos"] for line in lines] == ["2", "3"]


EVIL = (
    "=cmd|'/c calc'!A1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1+1", "\u00a0=1", "\u3000@SUM(A1)",
    "\uff1d1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)",
)  # fmt: skip


async def test_text_that_looks_like_a_formula_is_made_harmless(house: House) -> None:
    corrected = {"charge_nanos": -5, "kind": "correction_1"}
    await _enter(house, *({"response_model": evil, **corrected} for evil in EVIL))
    rows = list(csv.DictReader(io.StringIO((await _file(house, "csv")).decode(), newline="")))
    assert {row["response_model"] for row in rows} == {f"'{evil}" for evil in EVIL}
    assert {row["charge_nanos"] for row in rows} == {"-5"}
    lines = (await _file(house, "jsonl")).splitlines()
    assert {json.loads(line)["response_model"] for line in lines} == set(EVIL)


@pytest.mark.parametrize("name", ["openai/gpt-5", "a=b", "m-1", "grok 4", "x\ny"])
async def test_other_text_is_left_as_it_is(house: House, name: str) -> None:
    await _enter(house, {"response_model": name})
    [row] = csv.DictReader(io.StringIO((await _file(house, "csv")).decode(), newline=""))
    assert row["response_model"] == name


async def test_money_beyond_what_a_float_holds_is_exact_in_json(house: House) -> None:
    await _enter(house, {"charge_nanos": 2**60 + 1})
    [line] = (await _file(house, "jsonl")).splitlines()
    assert json.loads(line)["charge_nanos"] == str(2**60 + 1)
    assert json.loads(line)["parts"] == {"input": 1, "output": 2}


async def test_empty_file_has_its_heads_and_a_period_needs_an_end(house: House) -> None:
    assert (await _file(house, "csv")).decode().count("\r\n") == 1
    assert await _file(house, "jsonl") == b""
    with pytest.raises(AlcoveError) as caught:
        await _file(house, "csv", from_at=5, to_at=5)
    assert (caught.value.code, caught.value.reason) == ("invalid", "period")
    assert set(exports.TYPES) == {"csv", "jsonl"}
