"""Draws of the day: `make test` shows a few of what `make soak` shows whole, other ones every day.

The session's last lines name the day's seed; ALCOVE_TEST_SEED repeats the draws of another day.
"""

import os
import random
from datetime import UTC, datetime

SEED = os.environ.get("ALCOVE_TEST_SEED") or str(datetime.now(UTC).date())


def chance(what: str) -> random.Random:
    """The day's chance for `what`: the same all day, whatever else draws."""
    return random.Random(f"{what} {SEED}")
