"""Defects in what the meter makes of answers that are cut, packed, mistaken for others, or none at all."""

from tests.sabotage.defect import Defect

_NO_ANSWERS = "tests/metering_proxy/test_no_answers.py"
_UNREAD = "tests/metering_proxy/test_unread.py"
_FORMS = "tests/metering_proxy/test_forms.py"
_GOLDEN = "tests/metering_proxy/test_golden.py"
_COSTS = "tests/metering_proxy/test_costs.py"
_KEYS = "tests/metering_proxy/test_people_keys.py"

ANSWERS = [
    Defect(
        name="take-a-status-for-an-answer",
        why="an error with a status of 200 would be charged, end the chain, and count as a success",
        file="metering_proxy/wires/answers.py",
        old='return not answer or bool(answer.get("error")) or',
        new="return not answer or",
        tests=(_NO_ANSWERS,),
    ),
    Defect(
        name="take-nothing-for-an-answer",
        why="a provider that answers with nothing would never be left alone, and be paid for the input",
        file="metering_proxy/tenant_side/tee.py",
        old="found.failed = found.failed or silent or not self._fed_bytes",
        new="found.failed = found.failed",
        tests=(_NO_ANSWERS,),
    ),
    Defect(
        name="read-nonsense-as-nothing",
        why="usage that is text or negative would make the call free, and be booked as exact",
        file="metering_proxy/wires/openai_usage.py",
        old="prompt is None or (generates and completion is None):",
        new="not (prompt := prompt or 0) and not usage:",
        tests=(_UNREAD,),
    ),
    Defect(
        name="give-away-what-cannot-be-read",
        why="output that is packed strangely, or cut, would cost nothing",
        file="metering_proxy/tenant_side/tee.py",
        old="self._reader.found.unread_bytes = self._fed_bytes if unread else 0",
        new="self._reader.found.unread_bytes = 0",
        tests=(_UNREAD,),
    ),
    Defect(
        name="estimate-beyond-the-hold",
        why="an estimate would take more than the plan had left",
        file="metering_proxy/tenant_side/settling.py",
        old="passed = min(found.output_estimate, terms.bound.output_tokens(limit))",
        new="passed = found.output_estimate",
        tests=(_UNREAD,),
    ),
    Defect(
        name="believe-the-content-type",
        why="a stream that calls itself text would be read as no answer, with its usage in it",
        file="metering_proxy/tenant_side/tee.py",
        old='self._unsure = sniffs and framing in ("events", "whole", "array")',
        new="self._unsure = False",
        tests=(_UNREAD,),
    ),
    Defect(
        name="stop-at-the-first-member",
        why="of a stream whose events are packed one by one only the first would be read",
        file="metering_proxy/tenant_side/unpacking.py",
        old="            chunk = self._member.unused_data\n",
        new='            chunk = b""\n',
        tests=(_UNREAD,),
    ),
    Defect(
        name="let-zeros-within-replace",
        why="a last event of zeros would move cache writes of an hour to those of five minutes",
        file="metering_proxy/wires/anthropic_messages.py",
        old="if not any(parts.values()):",
        new="if not parts:",
        tests=(_GOLDEN, _COSTS),
    ),
    Defect(
        name="take-any-boundary",
        why="a form with two boundaries is one form here and another one at the provider",
        file="metering_proxy/wires/forms.py",
        old="_TYPE.fullmatch(content_type.strip())",
        new="_TYPE.match(content_type.strip())",
        tests=(_FORMS,),
    ),
    Defect(
        name="rotate-without-counting",
        why="each rotation leaves its predecessor alive for a day, so there would be keys without end",
        file="metering_proxy/api_keys.py",
        old="            await self._check_room(tx, tenant)\n            same = ",
        new="            same = ",
        tests=(_KEYS,),
    ),
    Defect(
        name="read-every-stream-in-one-turn",
        why="each renewal of leases would hold the events of a thousand streams up for seconds",
        file="metering_proxy/ledger/ledger.py",
        old="            hold.read()\n            await asyncio.sleep(0)\n",
        new="            hold.read()\n",
        tests=("tests/metering_proxy/test_renewals.py",),
    ),
    Defect(
        name="put-the-end-of-a-stream-by",
        why="a whole stream would be read again at its end, when all that ended together wait for it",
        file="metering_proxy/tenant_side/skimming.py",
        old="if found is None and whole.endswith(_END_OF_AN_OBJECT):",
        new="if found is None:",
        tests=("tests/metering_proxy/test_skimming.py",),
    ),
]
