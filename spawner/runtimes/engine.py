"""Calls of the Docker Engine from asyncio: docker-py in threads, its errors made ours.

A call that is cancelled is still waited for: a create that succeeds late must not be left to nobody.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import docker
import requests
from docker.errors import APIError, DockerException

from infra.kit.errors import AlcoveError
from spawner.metrics import SpawnerMetrics

T = TypeVar("T")
_CALL_S = 60


class Refused(AlcoveError):
    """The engine heard and said no: `unavailable` (reason `engine`) to whoever does not ask what
    `said`, its HTTP status, means here."""

    def __init__(self, error: APIError) -> None:
        why = f"the container engine refused: {error.explanation or error}"
        super().__init__("unavailable", why[:500], reason="engine")
        self.said = int(error.status_code or 500)


class Engine:
    """Runs calls in two pools, so that stops that hang never hold up starts. One client a thread."""

    def __init__(self, url: str, metrics: SpawnerMetrics | None = None) -> None:
        self._url, self._metrics = url, metrics
        self._local = threading.local()
        self._clients: list[docker.APIClient] = []
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="engine")
        self._stops = ThreadPoolExecutor(16, thread_name_prefix="engine-stop")
        self._version: str | None = None

    async def call(self, what: Callable[[Any], T], *, stop: bool = False, name: str = "") -> T:
        """The answer of `what(client)`. Raises Refused, or `unavailable` where the engine is not there."""
        pool = self._stops if stop else self._pool
        work = asyncio.get_running_loop().run_in_executor(pool, self._run, what, name)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    def client(self) -> docker.APIClient:
        """This thread's client; raises DockerException where no engine answers."""
        found: docker.APIClient | None = getattr(self._local, "client", None)
        if found is None:
            _reach(self._url)
            found = docker.APIClient(
                base_url=self._url, version=self._version or "auto", timeout=_CALL_S
            )
            self._version = found.api_version
            self._local.client = found
            self._clients.append(found)
        return found

    async def listener(self) -> docker.APIClient:
        """A client for one endless stream, which may be silent for as long as it likes. Caller closes it."""
        version = await self.call(lambda client: client.api_version)
        return docker.APIClient(base_url=self._url, version=version, timeout=None)

    def close(self) -> None:
        """Closes every connection and lets the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._stops.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.close()

    def _run(self, what: Callable[[Any], T], name: str) -> T:
        began, outcome = time.monotonic(), "failed"
        try:
            answer = what(self.client())
            outcome = "done"
        except APIError as error:
            outcome = "refused"
            raise Refused(error) from error
        except (DockerException, requests.RequestException, OSError) as error:
            raise AlcoveError(
                "unavailable", f"the container engine does not answer ({error})", reason="engine"
            ) from error
        finally:
            if self._metrics is not None and name:
                took_s = time.monotonic() - began
                self._metrics.engine_seconds.labels(name, outcome).observe(took_s)
        return answer


def _reach(url: str) -> None:
    """Raises OSError where nobody listens; docker-py would say so too, and leave its socket open."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(url.removeprefix("unix://"))
