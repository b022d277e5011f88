"""Defects in what the meter does when a clock is set."""

from tests.sabotage.defect import Defect

CLOCKS = [
    Defect(
        name="sweep-ones-own-living-calls",
        why="a clock set ahead would charge running streams as lost and give their places away",
        file="metering_proxy/ledger/endings.py",
        old="for request_id in lapsed if request_id not in mine]",
        new="for request_id in lapsed]",
        tests=("tests/metering_proxy/test_clock_set_ahead.py",),
    ),
    Defect(
        name="believe-a-clock-that-leapt",
        why="every neighbour's running call would be charged as lost when the clock is set ahead",
        file="metering_proxy/ledger/leaps.py",
        old="        if self._leapt_s is None:\n",
        new="        self._seen = (at, now_s)\n        if self._leapt_s is None:\n",
        tests=("tests/metering_proxy/test_clock_set_ahead.py",),
    ),
]
