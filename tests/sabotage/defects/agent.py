"""Defects in the agent."""

from tests.sabotage.defect import Defect

AGENT = [
    Defect(
        name="drop-one-event-frame",
        why="a page that reconnects would miss a word for good",
        file="agent_image/agent/store/events.py",
        old='"SELECT seq, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?", seq, limit)',
        new='"SELECT seq, body FROM event WHERE seq > ? + 1 ORDER BY seq LIMIT ?", seq, limit)',
        tests=("tests/agent/test_events.py",),
    ),
    Defect(
        name="deliver-a-message-twice",
        why="a message sent again after a cut would be answered, and paid, twice",
        file="agent_image/agent/intake.py",
        old="    if known is not None:\n        same =",
        new="    if known is not None and known['turn_state'] == 'queued':\n        same =",
        tests=("tests/agent/test_turns.py",),
    ),
    Defect(
        name="go-on-after-words-were-shown",
        why="an answer that the person has half read would begin again after a restart",
        file="agent_image/agent/turns.py",
        old="            elif turn.shown_chars or unknown or",
        new="            elif unknown or",
        tests=("tests/agent/test_restart.py",),
    ),
    Defect(
        name="ignore-a-stop-that-was-stored",
        why="a turn that was stopped would go on, and cost, after a restart",
        file="agent_image/agent/turns.py",
        old='            if row["cancel_requested"]:\n',
        new="            if False:\n",
        tests=("tests/agent/test_restart.py",),
    ),
    Defect(
        name="let-a-model-go-in-circles",
        why="a model that repeats one call would spend a month's quota in an hour",
        file="agent_image/agent/guard.py",
        old="return repeats >= _SAME_CALL or same_effect",
        new="return same_effect",
        tests=("tests/agent/test_guard.py",),
    ),
]
