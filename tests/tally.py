"""What a run has gone through, counted where it happens and added up over workers.

A plugin of pytest: `make soak` loads it (`-p tests.tally`), and its sentence is the run's last line.
"""

import time
from collections import Counter
from typing import Any

import pytest

from tests.draws import SEED

_COUNTED: Counter[str] = Counter()
_OUTCOMES: Counter[str] = Counter()
_BEGAN = time.monotonic()


def count(what: str, times: int = 1) -> None:
    """Notes that one more of `what`, a plural, was gone through."""
    _COUNTED[what] += times


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        _OUTCOMES[report.outcome] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tally"] = dict(_COUNTED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _COUNTED.update(getattr(node, "workeroutput", {}).get("tally", {}))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        print(sentence(_OUTCOMES, _COUNTED, SEED, time.monotonic() - _BEGAN))


def sentence(outcomes: Counter[str], counted: Counter[str], seed: str, seconds: float) -> str:
    """What ran and how it ended, in one line."""
    parts = [f"{counted[what]:,} {what}" for what in sorted(counted)]
    points = outcomes["passed"] + outcomes["failed"]
    left = f", {outcomes['skipped']} points not run" if outcomes["skipped"] else ""
    return (
        f"Soak of seed {seed}: {', '.join([f'{points:,} points', *parts])};"
        f" {outcomes['failed']} failures{left}; {seconds:.0f} s."
    )
