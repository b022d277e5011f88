"""Numbers and moments as the templates' README promises them."""

from datetime import date

import pytest

from gateway import words
from gateway.pages import report
from gateway.quota import view
from infra.kit.clock import FakeClock
from metering_proxy import wire
from tests.gateway.conftest import Serve


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "$0"),
        (1, "$0.000000001"),
        (45_000, "$0.000045"),
        (3_100_000, "$0.0031"),
        (3_149_999, "$0.0031"),
        (50_000_000, "$0.05"),
        (99_600_000, "$0.10"),
        (420_000_000, "$0.42"),
        (999_999_999, "$1.00"),
        (1_000_000_000, "$1.00"),
        (1_005_000_000, "$1.00"),
        (1_015_000_000, "$1.02"),
        (1_234_560_000_000, "$1,234.56"),
        (-420_000_000, "−$0.42"),
        (None, "no limit"),
    ],
)
def test_money_shows_enough_and_no_more(nanos: int | None, text: str) -> None:
    assert words.money(nanos) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1 KB"),
        (48_310, "48.3 KB"),
        (999_499, "999 KB"),
        (999_600, "1 MB"),
        (1_000_000_000, "1 GB"),
        (5_000_000_000_000_000, "5000 TB"),
    ],
)
def test_size_is_told_in_the_unit_that_fits(n_bytes: int, text: str) -> None:
    assert words.size(n_bytes) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"),
        (14, "14 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (9_960, "10 s"),
        (185_000, "3 min 5 s"),
    ],
)
def test_how_long_something_took_is_told_in_the_unit_that_fits(ms: int, text: str) -> None:
    assert words.took(ms) == text


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("the provider refuses the key (HTTP 401)", "The provider refuses the key (HTTP 401)."),
        ("the agent's image is there", "The agent's image is there."),
        ("Choose who it is.", "Choose who it is."),
        ("https://x is not an address", "https://x is not an address."),
        ("gpt-5: 'cheap' is not an amount.", "gpt-5: 'cheap' is not an amount."),
        ("", ""),
    ],
)
def test_sentence_keeps_the_letters_of_names(said: str, sentence: str) -> None:
    assert words.sentence(said) == sentence


MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = 1_793_714_700_000  # 3 November 2026, 14:05 UTC


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOW, "just now"),
        (NOW - 44_000, "just now"),
        (NOW - MINUTE, "1 minute ago"),
        (NOW - 5 * MINUTE, "5 minutes ago"),
        (NOW - 59 * MINUTE, "1 hour ago"),
        (NOW - 3 * HOUR, "3 hours ago"),
        (NOW - DAY, "yesterday"),
        (NOW - 3 * DAY, "3 days ago"),
        (NOW - 31 * DAY, "3 Oct 2026"),
        (NOW + 3 * DAY, "in 3 days"),
        (NOW + 40 * MINUTE, "in 40 minutes"),
    ],
)
def test_distance_is_told_as_a_person_would(at: int, text: str) -> None:
    assert words.distance(at, NOW) == text


def test_moments_are_written_out_in_utc() -> None:
    assert words.long_moment(NOW) == "3 November 2026, 14:05 UTC"
    assert words.short_moment(NOW) == "3 Nov 2026, 14:05 UTC"
    assert words.exact_moment(NOW + 9_000) == "3 Nov 2026, 14:05:09 UTC"
    assert words.iso(NOW) == "2026-11-03T14:05:00Z"


@pytest.mark.parametrize("name", ["Nowhere/City", "", None, "../../etc/passwd", "UTC\n"])
def test_zone_is_utc_when_it_is_not_known(name: str | None) -> None:
    assert words.zone(name) == "UTC"


def test_day_begins_at_midnight_of_the_zone_across_a_change_of_clocks() -> None:
    # Berlin went back an hour on 25 October 2026 at 03:00.
    noon = 1_792_926_000_000  # 2026-10-25T11:00Z, 12:00 in Berlin
    start = words.day_start(noon, "Europe/Berlin")
    assert start.isoformat() == "2026-10-25T00:00:00+02:00"
    assert words.at(start) == 1_792_879_200_000 == words.midnight(start.date(), "Europe/Berlin")
    assert words.month_start(noon, "Asia/Kolkata").isoformat() == "2026-10-01T00:00:00+05:30"


def _quota(limit: int | None, spent: int) -> wire.Quota:
    return wire.Quota(
        plan="free",
        status="active",
        charge_month=wire.MoneyWindow(
            limit_nanos=limit, spent_nanos=spent, held_nanos=7, resets_at=1
        ),
        requests_minute=wire.CountWindow(limit=20, used=0),
        concurrent=wire.CountWindow(limit=2, used=0),
        tokens_today=0,
    )


@pytest.mark.parametrize(
    ("limit", "spent", "percent", "level"),
    [
        (1000, 0, 0, "ok"),
        (1000, 799, 79, "ok"),
        (1000, 800, 80, "near"),
        (1000, 950, 95, "low"),
        (1000, 999, 99, "low"),
        (1000, 1000, 100, "out"),
        (1000, 1200, 100, "out"),
        (0, 0, 100, "out"),
        (None, 5, 0, "ok"),
    ],
)
def test_quota_is_out_only_when_nothing_is_left(
    limit: int | None, spent: int, percent: int, level: str
) -> None:
    seen = view(_quota(limit, spent))
    assert (seen.percent, seen.level) == (percent, level)


def _row(day: str, model: str, charge: int) -> wire.UsageRow:
    return wire.UsageRow(
        day=day,
        model=model,
        requests=1,
        input_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        output_tokens=5,
        cost_nanos=charge // 2,
        charge_nanos=charge,
        estimated=0,
    )


def test_chart_has_every_day_and_folds_small_models() -> None:
    rows = [_row("2026-11-02", f"m{n}", 100 - n) for n in range(8)]
    chart = report.chart(rows, date(2026, 11, 1), date(2026, 11, 3))
    assert chart["series"] == ["m0", "m1", "m2", "m3", "m4", report.OTHERS]
    assert [day["total_nanos"] for day in chart["days"]] == [0, sum(range(93, 101)), 0]
    assert chart["days"][1]["values"][report.OTHERS] == 95 + 94 + 93
    assert chart["days"][0] == {
        "day": "2026-11-01",
        "label": "1 Nov",
        "values": {},
        "total_nanos": 0,
    }


def test_sums_and_models_are_exact_and_dearest_first() -> None:
    rows = [_row("d", "a", 1), _row("d", "b", 2**60), _row("e", "a", 2)]
    assert report.sums(rows)["charge_nanos"] == 2**60 + 3
    assert "cost_nanos" not in report.sums(rows)
    assert [row["model"] for row in report.by_model(rows)] == ["b", "a"]


async def test_usage_page_counts_days_in_the_readers_zone(serve: Serve) -> None:
    clock = FakeClock()  # 2026-01-01T00:00Z, still 31 December in New York
    gateway = await serve(clock=clock)
    ada = await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    gateway.meter.spend(theirs, "2025-12-31", "model/a", 250_000_000)
    ada.jar.update_cookies({"alcove_zone": "America%2FNew_York"})
    page = await ada.visit("/usage")
    assert "December 2025" in page.text
    assert "America/New_York" in page.text
    assert "model/a" in page.text
    assert f"usage {theirs} America/New_York" in gateway.meter.calls
    ada.jar.update_cookies({"alcove_zone": "Nowhere%2FCity"})
    assert "January 2026" in (await ada.visit("/usage")).text
