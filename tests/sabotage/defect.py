"""What a defect is, and whether it still fits the code."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class GoneStale(Exception):
    """The code has moved on: the defect's old text is not there exactly once."""


@dataclass(frozen=True)
class Defect:
    """One small mistake. `tests` are pytest arguments of which at least one must fail; `why` says what
    it would cost if nobody noticed."""

    name: str
    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """The file's source with the mistake in it. Raises GoneStale."""
        found = source.count(self.old)
        if found != 1 or self.old == self.new:
            raise GoneStale(
                f"{self.name}: its old text stands {found} times in {self.file}, not once"
            )
        return source.replace(self.old, self.new)

    def put_into(self, tree: Path) -> None:
        """Makes the mistake in the copy at `tree`. Raises GoneStale."""
        path = tree / self.file
        if not path.exists():
            raise GoneStale(f"{self.name}: {self.file} is gone")
        path.write_text(self.applied(path.read_text()))
