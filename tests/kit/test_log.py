"""Logs: a line is a line whatever is in it, and carries the ids of its own request only."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from infra.kit import log


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """A logger called `test.log` writing as the services do."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(log.JsonFormatter("test"))
    handler.addFilter(log._Bound())
    logger = logging.getLogger("test.log")
    logger.handlers[:], logger.propagate = [handler], False
    logger.setLevel("INFO")
    yield out
    logger.handlers.clear()
    logger.propagate = True


LOG = logging.getLogger("test.log")


def test_line_stays_one_line_when_something_holds_a_newline(lines: io.StringIO) -> None:
    LOG.info("user said %s", 'a\nb\r\n{"level":"error"}\u2028\x1b[31m', extra={"route": "x\ny"})
    [line] = lines.getvalue().split("\n")[:-1]
    parsed = json.loads(line)
    assert parsed["level"] == "info"
    assert parsed["route"] == "x\ny"
    assert "\x1b" not in line
    assert "\r" not in line


def test_exception_stays_one_line_when_logged(lines: io.StringIO) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        LOG.exception("it broke")
    [line] = lines.getvalue().split("\n")[:-1]
    assert "ValueError: first\nsecond" in json.loads(line)["exception"]


async def test_request_id_is_its_own_when_two_run_at_once(lines: io.StringIO) -> None:
    both_in = asyncio.Barrier(2)

    async def request(name: str) -> None:
        with log.bound(request_id=name):
            await both_in.wait()
            LOG.info("inside %s", name)

    await asyncio.gather(request("a"), request("b"))
    LOG.info("outside")
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert all(f["request_id"] == f["event"][-1] for f in found[:2])
    assert "request_id" not in found[2]


def test_fields_are_gone_when_their_block_ended_or_raised() -> None:
    with log.bound(a="1"):
        with pytest.raises(RuntimeError), log.bound(b="2"):
            assert log.context() == {"a": "1", "b": "2"}
            raise RuntimeError
        assert log.context() == {"a": "1"}
    assert log.context() == {}


async def test_fields_end_with_their_task_when_bound_for_it() -> None:
    async def task() -> None:
        log.bind(turn="t1")
        assert log.context()["turn"] == "t1"

    await asyncio.create_task(task())
    assert "turn" not in log.context()


def test_lines_come_once_when_configured_twice(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        log.configure("test")
        log.configure("test")
        logging.getLogger("anything").info("only once")
        told = capsys.readouterr().out
        assert told.count("only once") == 1
        assert json.loads(told)["service"] == "test"
    finally:
        root.handlers[:] = before
        root.setLevel(level)
