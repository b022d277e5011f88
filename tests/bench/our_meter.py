"""Our meter as it is deployed, but for one listener on TCP, since wrk speaks nothing else:
`python -m tests.bench.our_meter <directory> <database> <listen> <tenant>`, on a database that is at its newest.

One tenant whose limits are all counted and never reached; what else it needs is made from outside
(our_tenant.py), so that nothing is in the process that no deployment has there.
"""

import socket
import sys
from pathlib import Path

import uvloop

from infra.kit import address, httpd, log, process, service, unix
from metering_proxy.app import create_app
from metering_proxy.settings import MeterSettings

_PLANS = """
[[plan]]
name = "free"
title = "Everything is counted"
charge_month = "1000000.00"
requests_minute = 1_000_000_000
tokens_day = 1_000_000_000_000
concurrent = 1_000_000
"""
SECRET = "a service secret of thirty-two characters"


def control_of(directory: Path) -> str:
    """Where the meter of `directory` is administered."""
    return f"unix://{directory}/control.sock"


def sockets_of(directory: Path) -> Path:
    """Where its tenants' sockets are."""
    return directory / "s"


def settings(directory: Path, database_url: str) -> MeterSettings:
    """Those of a production meter, with logs of warnings only: peers log no line a call either."""
    plans = directory / "plans.toml"
    plans.write_text(_PLANS)
    return MeterSettings(
        deployment="bench",
        service_secret=SECRET,
        sealing_key="5a" * 32,
        database_url=database_url,
        listen=control_of(directory),
        sockets_dir=sockets_of(directory),
        loopback_providers=(),
        plans_file=plans,
        stream_grace_s=0,
    )


async def main(directory: Path, database_url: str, listen: str, tenant: str) -> None:
    """Serves until SIGTERM."""
    service.raise_file_limit()
    log.configure("meter", "warning")
    chosen = settings(directory, database_url)
    most = httpd.Limits(connections=8_192, unproven=8_192)
    meter = create_app(chosen, limits=most)
    async with meter.running(), service.serving(meter.app, chosen.listen):
        where = address.parse(listen)
        sock = socket.create_server((where.host, where.port), backlog=unix.BACKLOG)
        listener = await meter.listeners.serve(sock, tenant, 1)
        await process.run_until_signal()
        await listener.close(grace_s=0)


if __name__ == "__main__":
    directory, database_url, listen, tenant = sys.argv[1:]
    uvloop.run(main(Path(directory), database_url, listen, tenant))
