"""Batches of the ledger: however operations are grouped, they mean what they mean one at a time."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.opening import store
from metering_proxy.ledger.ops import Answer, Correct, Op, Release, Renew, Reserve, Settle
from metering_proxy.ledger.verify import verify
from metering_proxy.pricing import Usage
from tests.metering_proxy.books import ask, hold_of, value

_TABLES = ("account_window", "reservation", "entry", "mark", "credit_grant", "grant_use")
_LIMIT = 7_000_000  # three whole calls and a part of a fourth


def _reserve(number: int, account: str, wanted: int) -> Reserve:
    op = ask(account, limit=_LIMIT, wanted=wanted, concurrent=5)
    return replace(op, request_id=f"r{number}")


def _settle(number: int, output: int) -> Settle:
    charge = 50_000 + output * 2_000
    usage = Usage(input=50, output=output)
    return Settle(f"r{number}", usage, charge, charge, "complete", False)


_number, _charge = st.integers(0, 7), st.sampled_from([60_000, 90_000])
_op: st.SearchStrategy[Op] = st.one_of(
    st.builds(_reserve, _number, st.sampled_from("ab"), st.sampled_from([300, 1_000, 2_000])),
    st.builds(lambda n, seen: Renew(((f"r{n}", seen),)), _number, st.integers(0, 50)),
    st.builds(_settle, _number, st.sampled_from([0, 10, 900, 2_500])),
    st.builds(lambda n: Release(f"r{n}"), _number),
    st.builds(lambda n, to: Correct(f"r{n}", 1, "p/m@2", 70_000, 70_000, to, to), _number, _charge),
)


def _once(ops: Sequence[Op]) -> list[Op]:
    """The operations, each request being held for but once, as ids of requests are."""
    first: dict[str, Op] = {}
    return [
        op for op in ops if not isinstance(op, Reserve) or first.setdefault(op.request_id, op) is op
    ]


async def _done(root: Path, migrated: Path, groups: Sequence[Sequence[Op]]) -> tuple[Any, Any]:
    """The answers and the tables after groups of operations, each one transaction."""
    path = Path(tempfile.mkdtemp(dir=root)) / "m.db"
    shutil.copy(migrated, path)
    clock = FakeClock()
    db = Database(f"sqlite:///{path}", durable=True, clock=clock)
    async with db.transaction() as tx:
        await tx.execute(
            sql(
                "INSERT INTO credit_grant VALUES ('g', 'a', 'credit', '', 1000000, 0, 0, NULL, 0, NULL)"
            )
        )
    books = store(db, worker="w", lease_s=60, clock=clock)
    answers: list[Answer] = []
    for group in groups:
        answers += await books.apply(group)
    await books.close()
    async with db.read() as reading:
        found = {
            name: sorted(str(dict(row)) for row in await reading.rows(sql(f"SELECT * FROM {name}")))
            for name in _TABLES
        }
    verdict = await verify(db)
    await db.close()
    assert verdict.whole, verdict
    return answers, found


@pytest.mark.thorough
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(ops=[_reserve(0, "a", 300), Renew((("r0", 1),)), _settle(0, 0)], cuts=[3])
@given(ops=st.lists(_op, max_size=24), cuts=st.lists(st.integers(1, 8), min_size=1, max_size=24))
async def test_groups_of_any_size_do_what_single_operations_do(
    tmp_path: Path, migrated: Path, ops: list[Op], cuts: list[int]
) -> None:
    one_by_one = await _done(tmp_path, migrated, [[op] for op in _once(ops)])
    groups, rest = [], _once(ops)
    for cut in [*cuts, len(ops) + 1]:
        groups.append(rest[:cut])
        rest = rest[cut:]
    assert await _done(tmp_path, migrated, groups) == one_by_one


async def test_operation_that_fails_takes_only_itself_back(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    for number in (1, 2, 3):
        await hold_of(ledger, _reserve(number, "a", 300))
    too_much = replace(_settle(2, 10), charge_nanos=2**70)  # more than a column holds
    answers = await asyncio.gather(
        *(ledger.settle(op) for op in (_settle(1, 10), too_much, _settle(3, 10))),
        return_exceptions=True,
    )
    assert (answers[0], type(answers[1]), answers[2]) == (True, AlcoveError, True)
    assert await value(db, "SELECT count(*) FROM entry") == 2
    assert await value(db, "SELECT count(*) FROM reservation WHERE state = 'dispatched'") == 1
    assert (await verify(db)).whole
