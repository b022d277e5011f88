"""Fixtures of the stories, and what a failed one shows."""

from collections.abc import Generator

import pytest

from tests.journeys.fixtures import agent_image, databases, house, house_settings, pair, runtime
from tests.journeys.house import House

__all__ = ["agent_image", "databases", "house", "house_settings", "pair", "runtime"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A story that failed shows what the services said."""
    report = yield
    house = getattr(item, "funcargs", {}).get("house")
    if report.failed and isinstance(house, House):
        report.sections.append(("the services", house.tails()))
    return report
