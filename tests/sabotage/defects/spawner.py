"""Defects in the spawner."""

from tests.sabotage.defect import Defect

SPAWNER = [
    Defect(
        name="cull-in-the-middle-of-a-turn",
        why="the assistant would fall asleep while it answers",
        file="spawner/instances.py",
        old="    if row.in_flight:\n",
        new="    if row.in_flight > 1:\n",
        tests=("tests/spawner/test_cull.py",),
    ),
    Defect(
        name="cull-without-asking-again",
        why="a turn that began since the last poll would be cut off",
        file="spawner/cull.py",
        old="fresh = await self.supervise.visit(row)",
        new="fresh: Row | None = row",
        tests=("tests/spawner/test_cull.py",),
    ),
    Defect(
        name="wake-the-suspended",
        why="a suspended tenant would go on by sending a message",
        file="spawner/ensure.py",
        old="            if row.suspended:\n                raise AlcoveError(",
        new='            if row.suspended and row.state == "ready":\n                raise AlcoveError(',
        tests=("tests/spawner/test_wake.py",),
    ),
    Defect(
        name="leave-the-agents-directory-open",
        why="a tenant could put a link or a stranger's listener at its socket's place",
        file="spawner/layout.py",
        old="_SEALED_OWN = 0o2550",
        new="_SEALED_OWN = 0o2770",
        tests=("tests/spawner/test_wake.py",),
    ),
]
