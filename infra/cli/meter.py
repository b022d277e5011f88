"""Verbs of the meter that a person calls by `alcove`: they run in the meter's own process, by its own words."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

from infra.cli import home, services

_METER = [sys.executable, "-m", "metering_proxy"]


def price_import(models: Sequence[str], *, write: bool, chosen: Mapping[str, Sequence[str]]) -> int:
    """`python -m metering_proxy price-import`; its exit status. `chosen`: options that take a value."""
    options = [
        part for name, values in chosen.items() for value in values for part in (name, value)
    ]
    words = ["price-import", *models, *options, *(["--write"] if write else [])]
    return subprocess.run([*_METER, *words], check=False).returncode


def ledger_verify() -> int:
    """`python -m metering_proxy verify` on the data directory of `alcove run`; its exit status. Raises Trouble."""
    opened = home.open_home(home.location(), shared=True)
    try:
        if "sockets" not in opened.state:
            raise home.Trouble(f"nothing has run in {opened.data} yet")
        environment = services.environment(opened, "metering_proxy")
    finally:
        opened.close()
    return subprocess.run([*_METER, "verify"], env=environment, check=False).returncode
