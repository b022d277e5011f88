"""Who is compared in `bench-meter`, and how each is started."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from infra.kit import ids
from tests import postgres
from tests.bench import meter_peers, our_tenant, targets
from tests.bench.processes import Cores, cpu_s, free_port, running
from tests.bench.targets import Absent

PATH = "/v1/chat/completions"
DIRECT, NGINX, SQLITE, POSTGRES = "direct", "nginx", "alcove sqlite", "alcove postgres"
LITELLM, PORTKEY = "litellm", "portkey"


@dataclass(frozen=True, slots=True)
class MeterTarget:
    """Something that answers chat completions. `fast` false: it cannot hold a thousand streams in the time that
    a round has. `database_pid`: the server that keeps its ledger."""

    name: str
    url: str
    pid: int | None
    headers: dict[str, str] = field(default_factory=dict)
    fast: bool = True
    database_pid: int | None = None

    def ledger_cpu_s(self) -> float:
        """Seconds of processor that the ledger's server has used."""
        return cpu_s(self.database_pid) if self.database_pid else 0.0


Start = Callable[[], AbstractContextManager[MeterTarget]]


def start(
    stack: ExitStack, directory: Path, where: Cores, only: Sequence[str]
) -> tuple[list[MeterTarget], dict[str, str]]:
    """Brings up the upstream and everyone; gives them, slow ones last, and why others are missing."""
    upstream = stack.enter_context(_upstream(directory, where.load))
    up, absent = [MeterTarget(DIRECT, upstream, None)], {}
    for name, begin in _everyone(directory, upstream, where.proxy).items():
        if only and name not in only:
            continue
        try:
            up.append(stack.enter_context(begin()))
        except Absent as error:
            absent[name] = str(error)
    return up, absent


def _everyone(directory: Path, upstream: str, core: int) -> dict[str, Start]:
    return {
        NGINX: partial(_nginx, directory, upstream, core),
        SQLITE: partial(_on_sqlite, directory, upstream, core),
        POSTGRES: partial(_on_postgres, directory, upstream, core),
        PORTKEY: partial(_portkey, directory, upstream, core),
        LITELLM: partial(_litellm, directory, upstream, core),
    }


@contextmanager
def _upstream(directory: Path, core: int) -> Iterator[str]:
    url = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "tests.bench.fake_upstream", url]
    with running(command, core=core, answers_at=url, log=directory / "upstream.log"):
        yield url


@contextmanager
def _nginx(directory: Path, upstream: str, core: int) -> Iterator[MeterTarget]:
    with targets.nginx(directory, upstream, core) as found:
        yield MeterTarget(NGINX, found.url, found.pid)


@contextmanager
def _portkey(directory: Path, upstream: str, core: int) -> Iterator[MeterTarget]:
    with meter_peers.portkey(directory, core) as found:
        headers = {"authorization": "Bearer unused", **meter_peers.portkey_headers(upstream)}
        yield MeterTarget(PORTKEY, found.url, found.pid, headers, fast=False)


@contextmanager
def _litellm(directory: Path, upstream: str, core: int) -> Iterator[MeterTarget]:
    with meter_peers.litellm(directory, upstream, core) as found:
        yield MeterTarget(LITELLM, found.url, found.pid, fast=False)


@contextmanager
def _on_sqlite(directory: Path, upstream: str, core: int) -> Iterator[MeterTarget]:
    home = directory / "sqlite"
    with ours(SQLITE, home, f"sqlite:///{home}/meter.db", upstream, core) as target:
        yield target


@contextmanager
def _on_postgres(directory: Path, upstream: str, core: int) -> Iterator[MeterTarget]:
    """With a server of its own that syncs every commit, on the meter's core."""
    bin_dir = postgres.binaries()
    if bin_dir is None:
        raise Absent("PostgreSQL is not installed: apt-get install postgresql")
    with postgres.server(bin_dir) as (admin_url, pid):
        for member in (pid, *_children(pid)):
            os.sched_setaffinity(member, {core})
        with postgres.fresh_database(bin_dir, admin_url) as url:
            home = directory / "postgres"
            with ours(POSTGRES, home, url, upstream, core, database_pid=pid) as target:
                yield target


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def ours(
    name: str,
    home: Path,
    database_url: str,
    upstream: str,
    core: int,
    database_pid: int | None = None,
) -> Iterator[MeterTarget]:
    """Our meter with its ledger in that database."""
    home.mkdir(mode=0o700)
    url, tenant = f"http://127.0.0.1:{free_port()}", ids.tenant_id()
    our_tenant.prepare(database_url)
    command = [sys.executable, "-m", "tests.bench.our_meter", str(home), database_url, url, tenant]
    with running(command, core=core, answers_at=url, log=home / "log") as pid:
        key = our_tenant.provision(home, tenant, upstream)
        headers = {"authorization": f"Bearer {key}"}
        yield MeterTarget(name, url, pid, headers, database_pid=database_pid)
