"""Defects in limits, grants, prices, keys, exports of the meter, and in several of it at once."""

from tests.sabotage.defect import Defect

_CREDIT = "tests/metering_proxy/test_credit.py"
_OWN = "tests/metering_proxy/test_own_keys.py"
_PEOPLE = "tests/metering_proxy/test_people_keys.py"
_CORRECTIONS = "tests/metering_proxy/test_corrections.py"
_CHANGES = "tests/metering_proxy/test_changes.py"

_KEY_MODELS = "tests/metering_proxy/test_key_models.py"
_MARKS = "tests/metering_proxy/test_marks.py"
_MEDIA = "tests/metering_proxy/test_media.py"
_NEVER_FITS = "tests/metering_proxy/test_never_fits.py"
_OVERRIDES = "tests/metering_proxy/test_overrides.py"

MONEY = [
    Defect(
        name="let-a-key-fall-back-anywhere",
        why="a key for a cheap model would be answered, and charged, by whatever stands behind it",
        file="metering_proxy/tenant_side/calls.py",
        old="                key.check(route.model.id)\n",
        new="                key.check(routes[0].model.id)\n",
        tests=(_KEY_MODELS,),
    ),
    Defect(
        name="show-a-key-every-model",
        why="a program would be offered what its key refuses",
        file="metering_proxy/tenant_side/door.py",
        old=" and key.offers(model.id)",
        new="",
        tests=(_KEY_MODELS,),
    ),
    Defect(
        name="forget-a-keys-models-at-rotation",
        why="to rotate a narrow key would make a key for everything",
        file="metering_proxy/api_keys.py",
        old='"models": _models(old),',
        new='"models": None,',
        tests=(_KEY_MODELS,),
    ),
    Defect(
        name="send-what-never-fits-to-wait",
        why="a request larger than the whole limit would be told to come back, for ever",
        file="metering_proxy/ledger/holds.py",
        old="    if fits >= op.least:\n        return",
        new="    if fits >= op.least or short.limit:\n        return",
        tests=(_NEVER_FITS,),
    ),
    Defect(
        name="forget-credit-in-what-fits",
        why="who has paid for more would be told that their request can never be answered",
        file="metering_proxy/ledger/holds.py",
        old="_tightest(op, credit.unspent(tx, op.account))",
        new="_tightest(op, 0)",
        tests=(_NEVER_FITS,),
    ),
    Defect(
        name="bill-words-as-pictures",
        why="what a model of pictures writes would cost four times its price",
        file="metering_proxy/wires/openai_images.py",
        old="as_images(openai_usage.text_output(said))",
        new="as_images()",
        tests=(_MEDIA,),
    ),
    Defect(
        name="give-words-beside-pictures-away",
        why="text from a model whose price tells pictures alone would be free",
        file="metering_proxy/providers/price_file.py",
        old='    rates.setdefault("output", max(',
        new='    rates.setdefault("output", min(0, ',
        tests=(_MEDIA,),
    ),
    Defect(
        name="mark-only-what-a-call-passes",
        why="whose limit was lowered to what they have used would be stopped without a word before",
        file="metering_proxy/api/tenants.py",
        old="        await marks.look([tenant])\n",
        new="",
        tests=(_MARKS,),
    ),
    Defect(
        name="override-for-ever",
        why="a week's favour would be a plan of its own",
        file="metering_proxy/tenants.py",
        old="        if until_at is not None and until_at <= self._clock.now_at():\n",
        new="        if until_at is not None and until_at <= 0:\n",
        tests=(_OVERRIDES,),
    ),
    Defect(
        name="override-only-what-the-plan-has",
        why="an admin who lowers a limit that the plan does not name would lower nothing",
        file="metering_proxy/tenants.py",
        old="            elif most is not None and kind",
        new="            elif most is None and kind",
        tests=(_OVERRIDES,),
    ),
    Defect(
        name="write-no-override-down",
        why="nobody would know afterwards who gave whom how much",
        file="metering_proxy/tenants.py",
        old="        if was == now:\n",
        new="        if was != now:\n",
        tests=(_OVERRIDES,),
    ),
    Defect(
        name="reprice-what-was-stated",
        why="what a provider really took would be corrected into what our list says",
        file="metering_proxy/repricing.py",
        old='        if parts.get("stated"):\n',
        new='        if parts.get("stated") == 2:\n',
        tests=(_CORRECTIONS,),
    ),
    Defect(
        name="spend-a-grant-that-is-over",
        why="money that had an end would have none",
        file="metering_proxy/ledger/credit.py",
        old='    " AND (expires_at IS NULL OR expires_at > :now_at)"\n    " AND amount',
        new='    " AND :now_at > 0"\n    " AND amount',
        tests=(f"{_CREDIT}::test_grant_that_is_over_pays_for_no_new_call_but_for_one_that_runs",),
    ),
    Defect(
        name="spend-what-lasts-first",
        why="a customer's credit would run out unused while the lasting one is spent",
        file="metering_proxy/ledger/credit.py",
        old="THEN 1 ELSE 0 END, expires_at, id",
        new="THEN 0 ELSE 1 END, expires_at, id",
        tests=(
            f"{_CREDIT}::test_grants_pay_what_the_plan_cannot_and_the_soonest_to_end_pays_first",
        ),
    ),
    Defect(
        name="charge-an-own-key",
        why="a tenant would pay its provider and us for the same call",
        file="metering_proxy/tenant_side/settling.py",
        old="    charged = terms.is_charged and not verdict.absorbed\n",
        new="    charged = not verdict.absorbed\n",
        tests=(f"{_OWN}::test_own_key_is_used_for_its_tenants_calls_and_charges_nothing",),
    ),
    Defect(
        name="use-an-own-key-for-everybody",
        why="one tenant's bill would carry its neighbours' calls",
        file="metering_proxy/own_keys.py",
        old="        key = self._keys.get((tenant, route.connection.id))\n",
        new=(
            "        key = next((k for (_, p), k in self._keys.items() if p == route.connection.id), None)\n"
        ),
        tests=(f"{_OWN}::test_own_key_is_used_for_its_tenants_calls_and_charges_nothing",),
    ),
    Defect(
        name="let-an-ended-key-live",
        why="a rotated key would open its door for ever",
        file="metering_proxy/keys.py",
        old="        if key is None or (key.until_at is not None and key.until_at <= self._clock.now_at()):\n",
        new="        if key is None:\n",
        tests=(f"{_PEOPLE}::test_rotated_key_works_beside_its_successor_for_a_day",),
    ),
    Defect(
        name="tell-nobody-of-a-key",
        why="a revoked key would live on in every other process",
        file="metering_proxy/api_keys.py",
        old='                await changes.note(tx, "key", tenant)\n',
        new="",
        tests=(f"{_CHANGES}::test_key_made_or_revoked_at_one_meter_is_known_at_the_other",),
    ),
    Defect(
        name="correct-twice",
        why="a price made good twice at once would be charged twice",
        file="metering_proxy/ledger/corrections.py",
        old="    if not count or (cost, charge) != (op.was_cost_nanos, op.was_charge_nanos):\n",
        new="    if not count:\n",
        tests=(f"{_CORRECTIONS}::test_correction_enters_the_difference_and_moves_the_month",),
    ),
    Defect(
        name="mark-a-limit-late",
        why="a tenant would hear of half its quota only when more than half is gone",
        file="metering_proxy/ledger/moves.py",
        old="if limit * percent <= spent * 100]",
        new="if limit * percent < spent * 100]",
        tests=("tests/metering_proxy/test_marks.py",),
    ),
    Defect(
        name="export-formulas",
        why="a model's name could run a command on an accountant's machine",
        file="metering_proxy/exports.py",
        old='        return f"\'{value}"\n',
        new="        return value\n",
        tests=(
            "tests/metering_proxy/test_exports.py"
            "::test_text_that_looks_like_a_formula_is_made_harmless",
        ),
    ),
    Defect(
        name="months-that-skip-a-day",
        why="a tenant who came on the 31st would lose its window in February",
        file="metering_proxy/ledger/windows.py",
        old="            day = date(year, month + 1, min(anchor.day, last))\n",
        new="            day = date(year, month + 1, min(anchor.day, 28, last))\n",
        tests=("tests/metering_proxy/test_windows.py",),
    ),
    Defect(
        name="import-any-price",
        why="a slip of the pen in a published list would be charged to everybody",
        file="metering_proxy/price_import/diff.py",
        old="        problem = problem or (None if accepted else _absurd(last, row))\n",
        new="",
        tests=("tests/metering_proxy/test_price_import.py",),
    ),
    Defect(
        name="take-up-half-a-file",
        why="a typing error in the plans would stop the meter or lift every limit",
        file="metering_proxy/plans.py",
        old="    if type(value) is not int or value < 0:\n",
        new="    if not isinstance(value, int):\n",
        tests=("tests/metering_proxy/test_reloading.py::test_plans_with_a_mistake_change_nothing",),
    ),
    Defect(
        name="tell-a-mark-twice",
        why="a person would get the same warning from every process",
        file="metering_proxy/marks.py",
        old="                telling = update(mark).where(untold, *mine)",
        new="                telling = update(mark).where(*mine)",
        tests=(f"{_MARKS}::test_mark_is_set_and_told_once_a_window_whoever_looks",),
    ),
    Defect(
        name="show-a-mark-for-ever",
        why="who has paid for a larger plan would still read that nearly all of it is used",
        file="metering_proxy/quotas.py",
        old='        if row["percent"] in moves.passed(limit.spent, limit.limit):\n',
        new="        if limit.limit:\n",
        tests=(_MARKS,),
    ),
    Defect(
        name="refuse-for-the-limit-that-ends-first",
        why="a caller would come again every minute of a month that is used up",
        file="metering_proxy/ledger/holds.py",
        old="        elif short is None or window.ends_at > short.ends_at:\n",
        new="        elif short is None:\n",
        tests=("tests/metering_proxy/test_limits_together.py",),
    ),
    Defect(
        name="admit-before-the-body",
        why="who is suspended while a body comes would still be called for",
        file="metering_proxy/tenant_side/calls.py",
        old="        standing.admit()\n",
        new="",
        tests=("tests/metering_proxy/test_limits_together.py",),
    ),
    Defect(
        name="refuse-a-free-model-for-its-fallbacks",
        why="who has no money left could not even call what costs nothing",
        file="metering_proxy/tenant_side/calls.py",
        old="any(one.may_exceed(agreed) for one in others)",
        new="not others",
        tests=("tests/metering_proxy/test_dear_fallbacks.py",),
    ),
    Defect(
        name="rotate-a-key-again",
        why="a key made in the place of one that was rotated would end with that one's last day",
        file="metering_proxy/api_keys.py",
        old='reason="rotated")\n',
        new='reason="rotated") if not old else None\n',
        tests=(
            f"{_PEOPLE}::test_key_is_rotated_once_and_its_successor_lasts_as_long_as_it_would_have",
        ),
    ),
    Defect(
        name="look-for-a-window-backwards-alone",
        why="where clocks go forward at midnight an hour of a day would count in no window",
        file="metering_proxy/ledger/windows.py",
        old="            number += 1\n",
        new="            break\n",
        tests=("tests/metering_proxy/test_windows.py",),
    ),
    Defect(
        name="forget-the-least",
        why="a recording of a second would cost a tenth of what the provider bills for it",
        file="metering_proxy/pricing.py",
        old="return max(units, self.units_least) * self.unit(unit)",
        new="return units * self.unit(unit)",
        tests=("tests/metering_proxy/test_media.py",),
    ),
]
