"""Our meter as it is deployed, but for one listener on TCP, since wrk speaks nothing else:
`python -m tests.bench.our_meter <directory> <database> <listen> <upstream> <ready>`.

One tenant whose limits are all counted and never reached, one provider with a price. Says its key in the file
`<ready>`, which is empty before.
"""

import socket
import sys
from pathlib import Path

import uvloop

from infra.kit import address, httpd, ids, log, migrate, process, service, unix
from metering_proxy import wire
from metering_proxy.app import PACKAGE, Meter, create_app
from metering_proxy.client import MeterClient
from metering_proxy.settings import MeterSettings
from tests.bench.openai_answers import MODEL

_PLANS = """
[[plan]]
name = "free"
title = "Everything is counted"
charge_month = "1000000.00"
requests_minute = 1_000_000_000
tokens_day = 1_000_000_000_000
concurrent = 1_000_000
"""
_SECRET = "a service secret of thirty-two characters"


def settings(directory: Path, database_url: str) -> MeterSettings:
    """Those of a production meter, with logs of warnings only: peers log no line a call either."""
    plans = directory / "plans.toml"
    plans.write_text(_PLANS)
    return MeterSettings(
        deployment="bench",
        service_secret=_SECRET,
        sealing_key="5a" * 32,
        database_url=database_url,
        listen=f"unix://{directory}/control.sock",
        sockets_dir=directory / "s",
        loopback_providers=(),
        plans_file=plans,
        stream_grace_s=0,
    )


async def provision(meter: Meter, chosen: MeterSettings, upstream: str) -> tuple[str, str]:
    """A tenant and its key, and a provider with a price."""
    row = wire.ModelRow(
        id=MODEL, input_nanos=150_000_000, output_nanos=600_000_000, max_output_tokens=4096
    )
    async with MeterClient(chosen.listen, _SECRET) as client:
        await client.create_provider(
            wire.NewProvider(
                kind="openai_compatible", name="Bench", base_url=f"{upstream}/v1", models=[row]
            )
        )
        tenant = ids.tenant_id()
        directory = chosen.sockets_dir / "t" / tenant / "1" / "meter"
        directory.mkdir(parents=True)
        minted = await client.mint_key(tenant, 1, str(directory))
    return tenant, minted.key


async def main(directory: Path, database_url: str, listen: str, upstream: str, ready: Path) -> None:
    """Serves until SIGTERM."""
    service.raise_file_limit()
    log.configure("meter", "warning")
    chosen = settings(directory, database_url)
    most = httpd.Limits(connections=8_192, unproven=8_192)
    meter = create_app(chosen, limits=most)
    await migrate.upgrade(meter.db, PACKAGE)
    async with meter.running(), service.serving(meter.app, chosen.listen):
        tenant, key = await provision(meter, chosen, upstream)
        where = address.parse(listen)
        sock = socket.create_server((where.host, where.port), backlog=unix.BACKLOG)
        listener = await meter.listeners.serve(sock, tenant, 1)
        ready.write_text(key)
        await process.run_until_signal()
        await listener.close(grace_s=0)


if __name__ == "__main__":
    directory, database_url, listen, upstream, ready = sys.argv[1:]
    uvloop.run(main(Path(directory), database_url, listen, upstream, Path(ready)))
