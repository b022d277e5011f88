"""`python -m tests.spawner.serve <kind>`: the real spawner, whose agents are stand-ins of that kind.

Settings come from the environment as for `python -m spawner`; the runtime is always child processes.
"""

import asyncio
import os
import sys

from infra.kit import log
from infra.kit import settings as kit_settings
from spawner import layout
from spawner.__main__ import serve
from spawner.choose import Chosen
from spawner.runtimes.process import ProcessRuntime
from spawner.settings import Settings
from tests.spawner.house import AGENTS

if __name__ == "__main__":
    os.umask(0o007)
    settings = kit_settings.load(Settings)
    log.configure("spawner", settings.log_level)
    assert settings.tenants_dir is not None
    where = layout.Layout(settings.sockets_dir, layout.own())
    runtime = ProcessRuntime(
        tenants_dir=settings.tenants_dir,
        layout=where,
        deployment=settings.deployment,
        command=[sys.executable, "-I", AGENTS, sys.argv[1]],
    )
    asyncio.run(serve(settings, chosen=Chosen(runtime, where, [], runtime.close)))
