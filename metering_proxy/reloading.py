"""Plans and prices taken up anew while the meter runs, when their files have changed.

A file is read whole and checked before anything of it holds; one with a mistake changes nothing. Calls under way
keep the plan and the price with which they began.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from metering_proxy import plans
from metering_proxy.marks import Marks
from metering_proxy.providers import price_file
from metering_proxy.providers.detection import Detection
from metering_proxy.providers.providers import Providers
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenants import Tenants

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Reloading:
    """Watches the two files."""

    def __init__(
        self,
        *,
        plans_file: Path,
        prices_file: Path,
        tenants: Tenants,
        marks: Marks,
        providers: Providers,
        detection: Detection,
        telemetry: Telemetry,
    ) -> None:
        self._plans, self._prices = _File(plans_file), _File(prices_file)
        self._tenants, self._marks = tenants, marks
        self._providers, self._detection = providers, detection
        self._telemetry = telemetry

    async def look(self) -> None:
        """Takes up what has changed since the last look."""
        if self._plans.changed():
            found = self._read("plans", self._plans.path, plans.load)
            if found is not None:
                await self._tenants.load(found)
                await self._marks.look()
        if self._prices.changed():
            prices = self._read("prices", self._prices.path, price_file.load)
            if prices is not None:
                self._detection.use(prices)
                await self._providers.load(prices)

    def _read(self, name: str, path: Path, load: Callable[[Path], T]) -> T | None:
        try:
            found = load(path)
        except (OSError, ValueError, LookupError, TypeError) as error:
            self._telemetry.reloads.labels(name, "refused").inc()
            _log.error("file not taken up", extra={"file": path.name, "problem": str(error)})
            return None
        self._telemetry.reloads.labels(name, "taken").inc()
        _log.info("file taken up", extra={"file": path.name})
        return found


class _File:
    """A file, and how it looked when it was last looked at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._stamp()

    def changed(self) -> bool:
        stamp = self._stamp()
        was, self._seen = self._seen, stamp
        return stamp != was and stamp is not None

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
