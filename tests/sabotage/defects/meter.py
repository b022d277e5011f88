"""Defects in the metering proxy."""

from tests.sabotage.defect import Defect

_BOOKS = "tests/metering_proxy/test_ledger.py"
_RECOVERY = "tests/metering_proxy/test_recovery.py"
_ENDINGS = "tests/metering_proxy/test_endings.py"
_FALLBACKS = "tests/metering_proxy/test_fallbacks.py"
_MEMORY = "tests/metering_proxy/test_memory.py"
_PRICED = "tests/metering_proxy/test_priced_calls.py"
_REFUSALS = "tests/metering_proxy/test_refusals.py"
_TELEMETRY = "tests/metering_proxy/test_telemetry.py"
_SURVIVAL = "tests/metering_proxy/test_survival.py"

METER = [
    Defect(
        name="look-without-a-lock",
        why="two processes at the edge of a limit would both get what is left of it",
        file="metering_proxy/ledger/on_postgres.py",
        old='    lock = " FOR UPDATE"\n',
        new='    lock = ""\n',
        tests=(
            f"{_BOOKS}::test_limit_holds_when_another_process_takes_the_rest_between_look_and_leap",
        ),
    ),
    Defect(
        name="believe-memory-of-leases",
        why="the sweeper would charge a call by what was known of it at its beginning",
        file="metering_proxy/ledger/endings.py",
        old="sheet.load(expired, (), (), whole=True)",
        new="sheet.load(expired, (), ())",
        tests=(
            "tests/metering_proxy/test_recovery.py"
            "::test_dispatched_hold_of_a_dead_process_is_charged_by_what_was_written_down",
        ),
    ),
    Defect(
        name="forget-what-running-calls-hold",
        why="calls at once would each see the whole balance",
        file="metering_proxy/ledger/holds.py",
        old="return window.limit - row.spent - row.held\n",
        new="return window.limit - row.spent\n",
        tests=(_BOOKS, "tests/metering_proxy/test_limits.py"),
    ),
    Defect(
        name="settle-twice",
        why="a settlement that is delivered again would be charged again",
        file="metering_proxy/ledger/sheet.py",
        old="not found.running:\n            return None\n        found.row |= {",
        new="not found.row:\n            return None\n        found.row |= {",
        tests=(_BOOKS,),
    ),
    Defect(
        name="release-what-was-sent",
        why="a killed process would make every running call free",
        file="metering_proxy/ledger/endings.py",
        old="    charged = sum(_charge_estimate(sheet, request_id) for request_id in expired)\n",
        new="    charged = sum(release(sheet, request_id) for request_id in expired)\n",
        tests=(_RECOVERY,),
    ),
    Defect(
        name="skip-settlement-on-abort",
        why="an answer that breaks off would cost nothing and hold its money for a minute",
        file="metering_proxy/tenant_side/sending.py",
        old="            elif not call.settled:\n                self._endings.settle(call)\n",
        new="",
        tests=(_ENDINGS,),
    ),
    Defect(
        name="stop-when-the-caller-leaves",
        why="leaving early would be a way to pay less than was generated",
        file="metering_proxy/tenant_side/call.py",
        old="        exchange.outlive()\n",
        new="",
        tests=(_ENDINGS,),
    ),
    Defect(
        name="accept-a-strangers-key",
        why="a stolen key would open every tenant's door",
        file="metering_proxy/tenant_side/door.py",
        old="        if key is not None and key.tenant == exchange.tenant:\n",
        new="        if key is not None:\n",
        tests=("tests/metering_proxy/test_walls.py",),
    ),
    Defect(
        name="drop-a-frame-that-carries-usage",
        why="the last words of providers that put usage beside them would vanish",
        file="metering_proxy/wires/openai_chat.py",
        old='isinstance(chunk.get("usage"), dict) and not chunk.get("choices")',
        new='isinstance(chunk.get("usage"), dict)',
        tests=("tests/metering_proxy/test_streams.py",),
    ),
    Defect(
        name="take-true-for-a-number",
        why="`max_tokens: true` would reserve for one token and buy thousands",
        file="metering_proxy/wires/numbers.py",
        old="    if type(value) is not int:\n",
        new="    if not isinstance(value, int):\n",
        tests=("tests/metering_proxy/test_requests.py",),
    ),
    Defect(
        name="older-decision-wins",
        why="a late delivery from the outbox would undo a suspension",
        file="metering_proxy/tenants.py",
        old="newer = table.c.version < state.version",
        new="newer = table.c.version != state.version",
        tests=("tests/metering_proxy/test_tenants.py",),
    ),
    Defect(
        name="days-of-utc",
        why="a person's today would begin at somebody else's midnight",
        file="metering_proxy/ledger/windows.py",
        old="    local = datetime.fromtimestamp(at / 1000, tz)\n",
        new="    local = datetime.fromtimestamp(at / 1000, UTC)\n",
        tests=("tests/metering_proxy/test_reports.py",),
    ),
    Defect(
        name="forget-the-markup",
        why="every customer of a paid plan would be charged the bare cost",
        file="metering_proxy/tenant_side/settling.py",
        old="money.with_markup(cost_nanos, terms.standing.plan.markup_ppm)",
        new="cost_nanos",
        tests=("tests/metering_proxy/test_limits.py",),
    ),
    Defect(
        name="send-again-after-a-word",
        why="a caller would read half of one answer, or pay for two",
        file="metering_proxy/tenant_side/sending.py",
        old="if found.failed and not found.text_bytes:\n",
        new="if found.failed:\n",
        tests=(_FALLBACKS,),
    ),
    Defect(
        name="blame-the-provider-for-its-askers",
        why="one caller's bad requests would close a model for everyone",
        file="metering_proxy/tenant_side/ending.py",
        old="    return status == 429 or status >= 500\n",
        new="    return status >= 400\n",
        tests=(_FALLBACKS,),
    ),
    Defect(
        name="hold-for-the-first-model-only",
        why="a dearer model in its place would spend what nobody had held",
        file="metering_proxy/tenant_side/holding.py",
        old="[one.bound for one in (terms, *others)]",
        new="[terms.bound]",
        tests=(_FALLBACKS,),
    ),
    Defect(
        name="let-everyone-try",
        why="a provider that comes back would meet everybody at once",
        file="metering_proxy/providers/breakers.py",
        old="        breaker.tried_s = now_s\n        return True\n",
        new="        return True\n",
        tests=("tests/metering_proxy/test_breakers.py",),
    ),
    Defect(
        name="refuse-a-whole-batch-for-one",
        why="one call's mistake would refuse everyone who was counted with it",
        file="metering_proxy/ledger/writer.py",
        old="        if len(ops) == 1:\n            return [error]\n",
        new="        return [error] * len(ops)\n",
        tests=("tests/metering_proxy/test_groups.py",),
    ),
    Defect(
        name="stop-in-mid-sentence",
        why="every release would cut every answer that is on its way",
        file="metering_proxy/app.py",
        old="self.listeners.shut(grace_s)",
        new="self.listeners.shut(0)",
        tests=(
            f"{_SURVIVAL}::test_stopping_meter_gives_a_stream_its_thirty_seconds_and_settles_it",
        ),
    ),
    Defect(
        name="leave-less-than-thirty-seconds",
        why="an answer of half a minute is an ordinary one",
        file="metering_proxy/settings.py",
        old="stream_grace_s: int = Field(30,",
        new="stream_grace_s: int = Field(5,",
        tests=(
            f"{_SURVIVAL}::test_stopping_meter_gives_a_stream_its_thirty_seconds_and_settles_it",
        ),
    ),
    Defect(
        name="remember-every-call",
        why="a meter of days would be a meter of gigabytes",
        file="metering_proxy/tenant_side/call.py",
        old="        exchange.outlive()\n",
        new="        exchange.outlive()\n        self.__dict__.setdefault('all', []).append(call)\n",
        tests=(
            f"{_MEMORY}::test_memory_stays_within_a_twentieth_after_many_calls_and_streams[4000]",
        ),
    ),
    Defect(
        name="take-all-that-comes",
        why="a hundred callers who do not read would take the memory of everybody",
        file="infra/kit/httpd/request.py",
        old="        return not self._wire.full\n",
        new="        return True\n",
        tests=(f"{_MEMORY}::test_memory_is_bounded_while_a_hundred_callers_do_not_read",),
    ),
    Defect(
        name="read-nothing-that-is-packed",
        why="every gzipped answer would be charged by estimate",
        file="metering_proxy/tenant_side/unpacking.py",
        old='_READABLE = ("gzip", "x-gzip", "deflate")',
        new='_READABLE = ("deflate",)',
        tests=("tests/metering_proxy/test_faults.py",),
    ),
    Defect(
        name="keep-a-providers-limits-to-ourselves",
        why="clients would call again and again while they are told to wait",
        file="metering_proxy/tenant_side/headers.py",
        old='    ("set-cookie",',
        new='    ("retry-after", "x-ratelimit-reset-tokens", "set-cookie",',
        tests=(_REFUSALS,),
    ),
    Defect(
        name="let-a-provider-speak-for-us",
        why="an agent would read a provider's word as its own meter's",
        file="metering_proxy/tenant_side/headers.py",
        old=' and not lower.startswith("x-alcove-")',
        new="",
        tests=(_REFUSALS,),
    ),
    Defect(
        name="let-a-refusal-be-tried-again",
        why="official clients would send each refused call three times",
        file="metering_proxy/refusals.py",
        old="    if error.status != 503:\n",
        new="    if error.status == 503:\n",
        tests=(_REFUSALS,),
    ),
    Defect(
        name="offer-what-has-no-price",
        why="people would choose a model that refuses them",
        file="metering_proxy/providers/catalog.py",
        old="            if model.price(at) is not None\n",
        new="            if model.prices is not None\n",
        tests=(_PRICED,),
    ),
    Defect(
        name="tell-of-input-without-its-cache",
        why="whoever adds the parts to the total would see a tenth of what was read",
        file="metering_proxy/telemetry.py",
        old='("gen_ai.usage.input_tokens", usage.total_input)',
        new='("gen_ai.usage.input_tokens", usage.input)',
        tests=(_TELEMETRY,),
    ),
    Defect(
        name="prove-and-keep-silent",
        why="a ledger that disagrees with itself would go on doing so unseen",
        file="metering_proxy/app.py",
        old="        if not verdict.whole:\n",
        new="        if not verdict.windows:\n",
        tests=(f"{_TELEMETRY}::test_proof_of_the_ledger_is_a_job_and_a_metric_and_a_command",),
    ),
]
