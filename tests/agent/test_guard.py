"""The loop guard: circles are ended soon, honest repetition is let be."""

import random

from agent.guard import LoopGuard, Verdict
from agent.transcript import Call, Round


def play(guard: LoopGuard, name: str, arguments: dict[str, object], result: str) -> Verdict:
    """One call, run where the guard allows it."""
    call = Call("id", "id", name, arguments)
    verdict = guard.before(call, known=True)
    if verdict is Verdict.ALLOW:
        call.result = result
        guard.note_after(call)
    return verdict


ALLOW, REFUSE, END = Verdict.ALLOW, Verdict.REFUSE, Verdict.END


def test_fifth_identical_call_is_the_end_even_when_blanks_differ() -> None:
    guard = LoopGuard()
    given = [play(guard, "poll", {"q": f"x{' ' * n} y"}, "no output") for n in range(1, 7)]
    assert given == [ALLOW, ALLOW, ALLOW, REFUSE, END, END]


def test_refusal_that_is_ignored_is_the_end_when_another_circle_follows() -> None:
    guard = LoopGuard()
    for _ in range(4):
        play(guard, "poll", {"q": "a"}, "nothing")
    assert play(guard, "read", {}, "text") is ALLOW
    for _ in range(2):
        play(guard, "read", {}, "text")
    assert play(guard, "read", {}, "text") is END


def test_ping_pong_is_refused_after_four_cycles_though_every_result_differs() -> None:
    guard = LoopGuard()
    given = [play(guard, "ab"[n % 2], {}, f"result {n}") for n in range(10)]
    assert given == [ALLOW] * 8 + [REFUSE, END]


def test_same_result_from_six_different_calls_is_a_circle() -> None:
    guard = LoopGuard()
    given = [play(guard, "write", {"path": str(n)}, "written") for n in range(8)]
    assert given == [ALLOW] * 6 + [REFUSE, END]


def test_guard_stands_where_it_stood_when_the_turn_is_taken_up_again() -> None:
    rounds = [Round("", [Call("i", "i", "poll", {}, result="nothing")]) for _ in range(3)]
    rounds.append(Round("", [Call("i", "i", "poll", {}, result="Refused", failed=True)]))
    guard = LoopGuard.resumed(rounds, lambda name: True)
    assert play(guard, "poll", {}, "nothing") is END


def test_honest_work_is_never_ended_in_two_hundred_traces() -> None:
    """Paging, polling with progress, reading after writing, several searches: at most 2 % may be stopped."""
    chance = random.Random(3)
    stopped = 0
    for trace in range(200):
        guard = LoopGuard()
        for step in range(chance.randrange(3, 13)):
            kind = trace % 4
            if kind == 0:
                verdict = play(guard, "read", {"page": step}, f"page {step}")
            elif kind == 1:
                verdict = play(guard, "status", {"job": "x"}, f"{step} of 12 done")
            elif kind == 2:
                name = chance.choice(["read", "write", "list"])
                verdict = play(guard, name, {"path": chance.choice("abcd")}, f"{name} {step}")
            else:
                verdict = play(
                    guard,
                    "search",
                    {"q": f"words {step}"},
                    chance.choice(["none", f"hit {step}", f"hit {step}"]),
                )
            if verdict is not ALLOW:
                stopped += 1
                break
    assert stopped <= 4
