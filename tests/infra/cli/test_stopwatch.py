"""What `make run` says of the time that it took."""

import pytest

from infra.cli.stopwatch import Stopwatch


class Hands:
    """Two clocks that go together."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def wall_s(self) -> float:
        return 1_767_225_600 + self.passed_s

    def steady_s(self) -> float:
        return 500 + self.passed_s

    def watch(self, began_at: str | None) -> Stopwatch:
        environment = {} if began_at is None else {"ALCOVE_BEGAN_AT": began_at}
        return Stopwatch(environment, wall_s=self.wall_s, steady_s=self.steady_s)


def test_building_before_and_within_is_told_apart_from_starting() -> None:
    hands = Hands()
    watch = hands.watch(str(1_767_225_600 - 30))
    with watch.building():
        hands.passed_s += 15
    hands.passed_s += 6
    said = "Ready after 51 s: 45 s of building, 6 s of starting"
    assert watch.ready() == said


def test_only_the_whole_is_told_when_nothing_was_built() -> None:
    hands = Hands()
    watch = hands.watch(None)
    with watch.building():
        hands.passed_s += 0.4
    hands.passed_s += 5.6
    assert watch.ready() == "Ready after 6 s"


def test_building_that_breaks_off_counts_all_the_same() -> None:
    hands = Hands()
    watch = hands.watch(None)
    with pytest.raises(RuntimeError), watch.building():
        hands.passed_s += 4
        raise RuntimeError
    hands.passed_s += 6
    assert watch.ready().startswith("Ready after 10 s: 4 s of building")


@pytest.mark.parametrize("began_at", ["", "soon", "-5", "9999999999", "1"])
def test_beginning_that_cannot_be_is_left_out(began_at: str) -> None:
    hands = Hands()
    watch = hands.watch(began_at)
    hands.passed_s += 6
    assert watch.ready() == "Ready after 6 s"
