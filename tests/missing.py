"""What a machine may lack: said in one line with its remedy, and never passed over where all is required."""

import os
from typing import NoReturn

import pytest


def lacks(what: str, remedy: str) -> NoReturn:
    """Skips the test, naming the remedy; fails it instead with ALCOVE_REQUIRE_ALL=1."""
    sentence = f"{what}: {remedy}"
    if os.environ.get("ALCOVE_REQUIRE_ALL") == "1":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)
