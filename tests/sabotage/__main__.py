"""`make sabotage`: all defects, or those named on the command line."""

import sys

from tests.sabotage.defects import DEFECTS
from tests.sabotage.runner import run


def main() -> int:
    """The exit code: 0 only if every defect turned its tests red."""
    wanted = set(sys.argv[1:])
    unknown = wanted - {defect.name for defect in DEFECTS}
    if unknown:
        print(f"no such defect: {', '.join(sorted(unknown))}")
        return 2
    return run([defect for defect in DEFECTS if not wanted or defect.name in wanted])


if __name__ == "__main__":
    raise SystemExit(main())
