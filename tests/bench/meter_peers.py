"""Gateways to models, for `bench-meter`: LiteLLM (stateless) and Portkey (no metering).

Both go on working for clients that left: measure them last, and wait until they are idle. Their
packages are kept in `targets.CACHE`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.processes import free_port, running
from tests.bench.targets import CACHE, Absent, Target, installed

LITELLM_VERSION = "1.108.7"
PORTKEY_VERSION = "1.15.2"
# With what its package asks for today, Portkey answers 500 to every stream.
_PORTKEY_OVERRIDES = {"@hono/node-server": "1.13.5", "hono": "4.9.7"}


@contextmanager
def portkey(directory: Path, core: int) -> Iterator[Target]:
    """Portkey's gateway. Raises Absent. It listens on every interface of the machine.

    The upstream is named in each call: see `portkey_headers`.
    """
    home = CACHE / f"portkey-{PORTKEY_VERSION}"
    package = {
        "private": True,
        "dependencies": {"@portkey-ai/gateway": PORTKEY_VERSION, **_PORTKEY_OVERRIDES},
        "overrides": _PORTKEY_OVERRIDES,
    }
    entry = home / "node_modules/@portkey-ai/gateway/build/start-server.js"
    if not entry.exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text(json.dumps(package))
        installed(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home)], "Portkey")
    port = free_port()
    url, log = f"http://127.0.0.1:{port}", directory / "portkey.log"
    command = ["node", str(entry), f"--port={port}", "--headless"]
    env = {"TRUSTED_CUSTOM_HOSTS": "127.0.0.1"}
    with running(command, core=core, answers_at=url, log=log, env=env) as pid:
        yield Target("portkey", url, pid)


def portkey_headers(upstream: str) -> dict[str, str]:
    """What a call must carry to reach `upstream` through Portkey."""
    return {"x-portkey-provider": "openai", "x-portkey-custom-host": f"{upstream}/v1"}


@contextmanager
def litellm(directory: Path, upstream: str, core: int) -> Iterator[Target]:
    """LiteLLM's proxy with one model, `bench`, at `upstream`. Raises Absent."""
    home = CACHE / f"litellm-{LITELLM_VERSION}"
    binary = home / "bin/litellm"
    if not binary.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=120)
        wanted = f"litellm[proxy]=={LITELLM_VERSION}"
        installed([str(home / "bin/python"), "-m", "pip", "install", "-q", wanted], "LiteLLM")
    port, config = free_port(), directory / "litellm.json"
    params = {"model": "openai/bench", "api_base": f"{upstream}/v1", "api_key": "unused"}
    # JSON is YAML too.
    config.write_text(
        json.dumps({"model_list": [{"model_name": "bench", "litellm_params": params}]})
    )
    url, log = f"http://127.0.0.1:{port}", directory / "litellm.log"
    command = [str(binary), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    env = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        # Loopback only, and it holds nothing that is worth a key.
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "DISABLE_ADMIN_UI": "True",
        "NO_DOCS": "True",
    }
    with running(
        [*command, "--num_workers", "1"], core=core, answers_at=url, log=log, env=env
    ) as pid:
        yield Target("litellm", url, pid)


__all__ = ["Absent", "litellm", "portkey", "portkey_headers"]
