"""The scripts' own tests, run by node's test runner: one line here, many there."""

import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def test_scripts_hold_their_rules_under_node(node: str) -> None:
    files = sorted(str(path) for path in HERE.glob("*.test.mjs"))
    assert len(files) >= 5
    run = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
