"""`alcove run` as a process: what it says, what it remembers, how it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.waiting import until_sync

ROOT = Path(__file__).parents[3]
_ACCIDENT = re.compile(
    r"Traceback|Task was destroyed|never retrieved|never awaited|Unclosed|loop is closed"
)


class Run:
    """A started `alcove run`: what it says, what its services wrote down."""

    def __init__(self, place: Path, *first_on_path: Path, **environment: str) -> None:
        self.place = place
        self.journal_file = place / "journal"
        self.output_file = place / f"output-{time.monotonic_ns()}"
        self._output = self.output_file.open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "infra.cli", "run"],
            cwd=place,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    [*map(str, first_on_path), str(ROOT), str(ROOT / "agent_image")]
                ),
                "ALCOVE_DATA_DIR": str(place / "data"),
                "ALCOVE_SPAWNER_RUNTIME": "process",
                "FAKE_JOURNAL": str(self.journal_file),
                **environment,
            },
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def output(self) -> str:
        return self.output_file.read_text()

    def accidents(self) -> list[str]:
        """Lines of output and logs that no ending may leave."""
        logs = sorted((self.place / "data" / "logs").glob("*.log"))
        return [
            f"{file.name}: {line}"
            for file in (self.output_file, *logs)
            for line in file.read_text(errors="replace").splitlines()
            if _ACCIDENT.search(line)
        ]

    def journal(self) -> list[str]:
        return self.journal_file.read_text().splitlines() if self.journal_file.exists() else []

    def state(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.place / "data" / "state.json").read_text())
        return found

    def pids(self) -> dict[str, int]:
        children = self.state()["children"]
        assert isinstance(children, dict)
        return {name: identity[0] for name, identity in children.items()}

    def ready(self, timeout_s: float = 30) -> "Run":
        """Wait until it says that it is."""
        until_sync(
            lambda: "Ctrl-C ends everything" in self.output() or self.process.poll() is not None,
            timeout_s=timeout_s,
        )
        assert self.process.poll() is None, self.output()
        return self

    def end(self, number: int = signal.SIGINT) -> float:
        """Send the signal; how many seconds the end took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(15)
        return time.monotonic() - began

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if (self.place / "data" / "state.json").exists():
            shutil.rmtree(str(self.state()["sockets"]), ignore_errors=True)
        self._output.close()
