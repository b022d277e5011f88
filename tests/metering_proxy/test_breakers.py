"""Circuit breakers by themselves: when they open, who is let through, when they close."""

import pytest

from infra.kit.clock import FakeClock
from metering_proxy.providers.breakers import Breakers

KEY = ("p", "p/m", None)


@pytest.fixture
def breakers(clock: FakeClock) -> Breakers:
    return Breakers(clock)


def _fail(breakers: Breakers, times: int) -> None:
    for _ in range(times):
        assert breakers.admits(KEY)
        breakers.failed(KEY, "unreachable")


def test_breaker_opens_at_the_fifth_failure_in_a_row(breakers: Breakers) -> None:
    _fail(breakers, 4)
    assert breakers.admits(KEY)
    breakers.failed(KEY, "unreachable")
    assert not breakers.admits(KEY)
    assert breakers.rest_s(KEY) == 60
    assert breakers.open == 1
    assert breakers.admits(("p", "p/other", None))


def test_success_in_between_begins_the_count_anew(breakers: Breakers) -> None:
    _fail(breakers, 4)
    breakers.succeeded(KEY)
    _fail(breakers, 4)
    assert breakers.admits(KEY)


def test_what_the_asker_did_wrong_counts_neither_way(breakers: Breakers) -> None:
    _fail(breakers, 4)
    for _ in range(10):
        breakers.undecided(KEY)
    assert breakers.admits(KEY)
    breakers.failed(KEY, "unreachable")
    assert not breakers.admits(KEY)


def test_failures_of_more_than_two_minutes_do_not_add_up(
    breakers: Breakers, clock: FakeClock
) -> None:
    for _ in range(12):
        breakers.failed(KEY, "unreachable")
        clock.advance(31)
        assert breakers.admits(KEY)
    assert breakers.open == 0


def test_one_call_is_let_through_after_the_rest_and_decides(
    breakers: Breakers, clock: FakeClock
) -> None:
    _fail(breakers, 5)
    clock.advance(59.9)
    assert not breakers.admits(KEY)
    clock.advance(0.2)
    assert breakers.admits(KEY)
    assert not breakers.admits(KEY)
    breakers.succeeded(KEY)
    assert breakers.admits(KEY)
    assert breakers.admits(KEY)
    assert breakers.open == 0


def test_rest_doubles_with_each_failed_try_up_to_ten_minutes(
    breakers: Breakers, clock: FakeClock
) -> None:
    _fail(breakers, 5)
    for rest_s in (60, 120, 240, 480, 600, 600):
        assert breakers.rest_s(KEY) == rest_s
        clock.advance(rest_s)
        assert breakers.admits(KEY)
        breakers.failed(KEY, "unreachable")


def test_try_that_was_the_askers_fault_lets_the_next_one_decide(
    breakers: Breakers, clock: FakeClock
) -> None:
    _fail(breakers, 5)
    clock.advance(60)
    assert breakers.admits(KEY)
    breakers.undecided(KEY)
    assert breakers.admits(KEY)
    assert not breakers.admits(KEY)


def test_try_that_never_ends_does_not_close_the_way_for_ever(
    breakers: Breakers, clock: FakeClock
) -> None:
    _fail(breakers, 5)
    clock.advance(60)
    assert breakers.admits(KEY)
    clock.advance(59)
    assert not breakers.admits(KEY)
    clock.advance(1)
    assert breakers.admits(KEY)


def test_late_failure_of_a_call_begun_before_does_not_prolong_the_rest(
    breakers: Breakers, clock: FakeClock
) -> None:
    _fail(breakers, 5)
    clock.advance(30)
    breakers.failed(KEY, "unreachable")
    assert breakers.rest_s(KEY) == 30


def test_trouble_is_told_from_the_first_failure_on(breakers: Breakers, clock: FakeClock) -> None:
    assert breakers.troubles == []
    began_at = clock.now_at()
    breakers.failed(KEY, "first_byte")
    clock.advance(600)
    breakers.failed(KEY, "http_503")
    [trouble] = breakers.troubles
    assert (trouble.key, trouble.state, trouble.failures) == (KEY, "failing", 2)
    assert (trouble.since_at, trouble.last_at) == (began_at, began_at + 600_000)
    assert (trouble.why, trouble.probe_at, trouble.passed_over) == ("http_503", None, 0)
    breakers.succeeded(KEY)
    assert breakers.troubles == []


def test_trouble_says_when_the_probe_comes_and_how_many_were_passed_over(
    breakers: Breakers, clock: FakeClock
) -> None:
    _fail(breakers, 5)
    clock.advance(20)
    assert not breakers.admits(KEY)
    assert not breakers.admits(KEY)
    [trouble] = breakers.troubles
    assert (trouble.state, trouble.passed_over) == ("open", 2)
    assert trouble.probe_at == clock.now_at() + 40_000
    clock.advance(40)
    assert breakers.troubles[0].state == "half_open"
    assert breakers.troubles[0].probe_at is None
    assert breakers.admits(KEY)
    assert breakers.troubles[0].state == "half_open"
    breakers.failed(KEY, "unreachable")
    assert (breakers.troubles[0].state, breakers.troubles[0].failures) == ("open", 6)


def test_refused_key_is_told_of_but_opens_nothing(breakers: Breakers) -> None:
    for _ in range(20):
        assert breakers.admits(KEY)
        breakers.refused(KEY, "http_401")
    [trouble] = breakers.troubles
    assert (trouble.state, trouble.failures, trouble.why) == ("failing", 20, "http_401")
    breakers.refused(("p", "p/m", "sk-of-a-tenant"), "http_401")
    assert len(breakers.troubles) == 1, "a tenant's own key is its own business"


def test_passed_test_lets_the_next_call_of_its_provider_try(
    breakers: Breakers, clock: FakeClock
) -> None:
    other = ("q", "q/m", None)
    own = ("p", "p/m", "sk-of-a-tenant")
    _fail(breakers, 5)
    for _ in range(5):
        breakers.failed(other, "idle")
        breakers.failed(own, "idle")
    breakers.failed(("p", "p/seldom", None), "idle")
    breakers.mended("p")
    assert breakers.admits(KEY), "one may try at once"
    assert not breakers.admits(KEY)
    assert not breakers.admits(other)
    assert not breakers.admits(own)
    assert {trouble.key for trouble in breakers.troubles} == {KEY, other, own}
    breakers.forget("p")
    assert {trouble.key for trouble in breakers.troubles} == {other}
