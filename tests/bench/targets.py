"""Proxies between one address and one upstream: nginx, configurable-http-proxy, and ours."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.bench.processes import free_port, running

# Kept between runs; never inside the source tree.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "alcove-bench"
TOKEN = "a-token-of-the-bench"
CHP_VERSION = "5.3.0"


class Absent(Exception):
    """A peer that this machine does not have; the sentence says what would bring it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that answers at `url`; `pid` is None for the upstream itself."""

    name: str
    url: str
    pid: int | None


@contextmanager
def nginx(directory: Path, upstream: str, core: int, *, streams: int = 4096) -> Iterator[Target]:
    """One worker, buffering off, upstream connections kept. Raises Absent."""
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if binary is None:
        raise Absent("nginx is not installed: apt-get install nginx-light")
    home, port = directory / "nginx", free_port()
    home.mkdir(exist_ok=True)
    server = upstream.replace("unix://", "unix:").removeprefix("http://")
    user = "user root;" if os.geteuid() == 0 else ""
    config = home / "nginx.conf"
    config.write_text(
        f"""{user} worker_processes 1; daemon off; pid {home}/pid; error_log stderr crit;
events {{ worker_connections {streams * 4}; }}
http {{
  access_log off; client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
  keepalive_requests 100000000;
  upstream up {{ server {server}; keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 300s;
    }}
  }}
}}
"""
    )
    command = [binary, "-c", str(config), "-p", str(home), "-e", "stderr"]
    url = f"http://127.0.0.1:{port}"
    with running(command, core=core, answers_at=url, log=home / "log") as pid:
        yield Target("nginx", url, pid)


@contextmanager
def configurable_http_proxy(directory: Path, upstream: str, core: int) -> Iterator[Target]:
    """JupyterHub's proxy with one default route. Raises Absent."""
    home = _npm("configurable-http-proxy", CHP_VERSION)
    port, api = free_port(), free_port()
    target = upstream
    if upstream.startswith("unix://"):
        target = "http+unix://" + quote(upstream.removeprefix("unix://"), safe="")
    command = [
        str(home / "node_modules/.bin/configurable-http-proxy"),
        *("--ip", "127.0.0.1", "--port", str(port), "--api-ip", "127.0.0.1"),
        *("--api-port", str(api), "--default-target", target, "--log-level", "error"),
    ]
    name = "chp" if target.startswith("http+unix") else "chp tcp"
    url, log = f"http://127.0.0.1:{port}", directory / f"{name}.log"
    env = {"CONFIGPROXY_AUTH_TOKEN": TOKEN}
    with running(command, core=core, answers_at=url, log=log, env=env) as pid:
        yield Target(name, url, pid)


@contextmanager
def ours(directory: Path, upstream: str, core: int, kind: str) -> Iterator[Target]:
    """Our relay: `kind` is `protocol` (httpd and ProtocolUpstream) or `aiohttp` (ASGI and HttpUpstream)."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "tests.bench.our_relay", kind, url, upstream, TOKEN]
    with running(command, core=core, answers_at=url, log=directory / f"{kind}.log") as pid:
        yield Target(f"alcove {kind}", url, pid)


def _npm(package: str, version: str) -> Path:
    home = CACHE / f"{package}-{version}"
    if not (home / "node_modules" / package).is_dir():
        home.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home)]
        installed([*command, f"{package}@{version}"], package)
    return home


def installed(command: list[str], what: str, *, most_s: float = 600.0) -> None:
    """Runs an installer of a peer. Raises Absent where it is missing or fails."""
    if shutil.which(command[0]) is None:
        raise Absent(f"{what} needs {command[0]}: apt-get install {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=most_s)
    if done.returncode:
        raise Absent(f"{what} could not be installed: {done.stderr.strip()[-300:]}")
