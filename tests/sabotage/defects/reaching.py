"""Defects in what the meter lets a request bring about past allow-list, hold and price."""

from tests.sabotage.defect import Defect

_MEMBERS = "tests/metering_proxy/test_members.py"
_BEYOND = "tests/metering_proxy/test_beyond_the_body.py"
_BOUNDS = "tests/metering_proxy/test_bounds.py"

REACHING = [
    Defect(
        name="send-on-members-that-nobody-knows",
        why="a body could name other models, and be served by one that the plan does not offer",
        file="metering_proxy/tenant_side/terms.py",
        old="        if name not in route.connection.kind.members:\n",
        new="        if name in route.connection.kind.members:\n",
        tests=(_MEMBERS,),
    ),
    Defect(
        name="know-names-in-any-case",
        why="`MAX_TOKENS` would pass, and servers that match names without case would heed it",
        file="metering_proxy/wires/members.py",
        old="tuple(name for name in names if name not in there)",
        new="tuple(name for name in names if name.casefold() not in there)",
        tests=(_MEMBERS,),
    ),
    Defect(
        name="let-providers-run-tools-on-chat",
        why="a search that a tool begins would cost what no token count shows",
        file="metering_proxy/wires/openai_chat.py",
        old='        _check_tools(document.get("tools"))\n',
        new="",
        tests=(_MEMBERS,),
    ),
    Defect(
        name="hold-the-plain-tier-where-none-is-pinned",
        why="an account whose setting is priority would be billed twice what was held",
        file="metering_proxy/pricing.py",
        old='UNPINNED = frozenset((None, "", "auto"))',
        new='UNPINNED = frozenset(("",))',
        tests=(_BOUNDS, _BEYOND),
    ),
    Defect(
        name="take-tiers-without-a-price",
        why="Gemini's priority would be charged as if it were standard",
        file="metering_proxy/pricing.py",
        old='return asked == "flex" or self.knows_tier(asked)',
        new="return True",
        tests=(_BEYOND,),
    ),
    Defect(
        name="trust-parts-that-nobody-knows",
        why="a picture or thoughts kept at the provider would be held for the few bytes of their id",
        file="metering_proxy/wires/survey.py",
        old="    elif kind not in _TEXT and",
        new='    elif kind in ("file", "document", "input_file") and',
        tests=(_BOUNDS,),
    ),
    Defect(
        name="let-a-context-be-compacted",
        why="a compaction is a call of its own, outside of hold and token limit",
        file="metering_proxy/wires/anthropic_messages.py",
        old='.startswith("clear_"):',
        new='.startswith(("clear_", "compact_")):',
        tests=(_BEYOND,),
    ),
    Defect(
        name="leave-passes-out",
        why="what the sums of an answer leave out would be paid by the operator",
        file="metering_proxy/wires/anthropic_messages.py",
        old="    seen = _whole(seen)\n",
        new="",
        tests=(_BEYOND,),
    ),
]
