"""Defects in what admins are told, and in what is estimated of an answer that does not tell."""

from tests.sabotage.defect import Defect

_TROUBLES = "tests/metering_proxy/test_troubles.py"

REPORTING = [
    Defect(
        name="pay-each-search-of-a-prompt",
        why="models whose provider bills searches by the prompt would cost several times their price",
        file="metering_proxy/pricing.py",
        old='return min(searches, 1) if self.search_per == "prompt" else searches',
        new="return searches",
        tests=("tests/metering_proxy/test_google_searches.py",),
    ),
    Defect(
        name="estimate-in-the-plain-tier",
        why="an answer that breaks off in a dearer tier would cost half of what its provider takes",
        file="metering_proxy/pricing.py",
        old="        if named not in UNPINNED:\n            return named\n",
        new="        if named not in UNPINNED or asked is None:\n            return None\n",
        tests=("tests/metering_proxy/test_assumed_tiers.py",),
    ),
    Defect(
        name="hear-nothing-in-other-words",
        why="a stream of what is no JSON would cost no output at all, however long it is",
        file="metering_proxy/wires/wire.py",
        old="return max(self.text_bytes, self.unread_bytes) or self.strange_bytes",
        new="return max(self.text_bytes, self.unread_bytes)",
        tests=("tests/metering_proxy/test_mislabelled.py",),
    ),
    Defect(
        name="forget-calls-that-were-not-sent",
        why="of a provider that is dead no call would be found by anybody",
        file="metering_proxy/tenant_side/ending.py",
        old="        if call.failure is None:\n            self._ledger.release(call.hold)\n",
        new="        if call.failure or True:\n            self._ledger.release(call.hold)\n",
        tests=(_TROUBLES,),
    ),
    Defect(
        name="count-what-was-not-sent",
        why="a provider that cannot be reached would use up its askers' requests",
        file="metering_proxy/ledger/ops.py",
        old="        return int(self.outcome != NOT_SENT)\n",
        new="        return 1\n",
        tests=(_TROUBLES,),
    ),
    Defect(
        name="remember-every-refused-target",
        why="a tool that asks for a million hosts would take the meter's memory",
        file="metering_proxy/egress/record.py",
        old="key not in record.targets and len(record.targets) == MOST_TARGETS",
        new="key not in record.targets and not MOST_TARGETS",
        tests=("tests/metering_proxy/egress/test_record.py",),
    ),
]
