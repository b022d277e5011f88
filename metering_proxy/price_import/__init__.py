"""`python -m metering_proxy price-import`: published prices brought into the reviewed price file, by hand.

`source.py` reads the genai-prices package as it is installed (extra `ops`), `diff.py` compares and judges,
`editing.py` writes rows into the file. Nothing is downloaded, and no meter that serves loads any of this.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from metering_proxy.price_import import diff, editing, source
from metering_proxy.providers import price_file


def run(arguments: Sequence[str]) -> int:
    """Prints what differs; with `--write` adds it to the file. 1 where something must be looked at first."""
    asked = _parser().parse_args(arguments)
    try:
        prices = source.installed()
    except source.Missing as missing:
        print(missing, file=sys.stderr)  # noqa: T201
        return 69
    report = diff.compare(
        editing.read(asked.file),
        prices,
        today=datetime.now(UTC).date(),
        only=asked.model,
        add=asked.add,
        accept=asked.accept,
    )
    print(report.text(), end="")  # noqa: T201
    if report.refused:
        return 1
    if asked.write and report.rows:
        editing.add(asked.file, report.rows)
        print(f"{len(report.rows)} rows added to {asked.file.name}")  # noqa: T201
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m metering_proxy price-import")
    parser.add_argument("model", nargs="*", help="look at these alone: provider/model")
    parser.add_argument("--file", type=Path, default=price_file.FILE, help="the price file")
    parser.add_argument("--write", action="store_true", help="add the rows; else only tell")
    parser.add_argument(
        "--add", action="append", default=[], metavar="PROVIDER/MODEL", help="take a new model too"
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="PROVIDER/MODEL",
        help="take a change that looks like a mistake",
    )
    return parser
