"""A private PostgreSQL for tests: a real server on a loopback port, gone with the process that started it."""

import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until_sync

_PR_SET_PDEATHSIG = 1
# Durable only as long as the process lives: it is killed with its data, and tests kill services, not it.
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def binaries() -> Path | None:
    """Where `initdb` lies, or None."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@contextmanager
def cluster(bin_dir: Path) -> Iterator[str]:
    """Runs a server while the block runs; gives the URL of its administrator."""
    with server(bin_dir, _FAST) as (url, _):
        yield url


@contextmanager
def server(bin_dir: Path, settings: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """The same with settings of the caller's (as it is delivered: durable), and the process's id."""
    home = Path(tempfile.mkdtemp(prefix="alcove-pg-"))
    password, port = secrets.token_hex(16), _free_port()
    try:
        (home / "password").write_text(password)
        uid, gid = _unprivileged()
        for path in (home, home / "password"):
            os.chown(path, uid, gid)
        initdb = [bin_dir / "initdb", "-D", home / "data", "-U", "alcove", "-A", "scram-sha-256"]
        initdb += [f"--pwfile={home / 'password'}", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]
        subprocess.run(initdb, check=True, capture_output=True, user=uid, group=gid, cwd=home)
        process = _start(bin_dir, home, port, settings)
        try:
            url = f"postgresql://alcove:{password}@127.0.0.1:{port}/postgres"
            until_sync(lambda: _answers(bin_dir, url), timeout_s=30, what="PostgreSQL's answer")
            yield url, process.pid
        finally:
            process.send_signal(signal.SIGINT)  # fast shutdown
            process.wait(20)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def fresh_database(bin_dir: Path, admin_url: str) -> Iterator[str]:
    """A database of its own while the block runs; gives its URL."""
    name = f"t_{secrets.token_hex(6)}"
    at = f"--maintenance-db={admin_url}"
    subprocess.run([bin_dir / "createdb", at, name], check=True, capture_output=True)
    try:
        yield admin_url.rpartition("/")[0] + f"/{name}"
    finally:
        subprocess.run([bin_dir / "dropdb", "--force", at, name], check=True, capture_output=True)


def _start(
    bin_dir: Path, home: Path, port: int, settings: Sequence[str]
) -> "subprocess.Popen[bytes]":
    uid, gid = _unprivileged()
    command = [bin_dir / "postgres", "-D", home / "data", "-p", str(port), "-k", home]
    for setting in ("listen_addresses=127.0.0.1", "max_connections=120", *settings):
        command += ["-c", setting]
    with (home / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            user=uid,
            group=gid,
            extra_groups=[],
            cwd=home,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT),
        )


def _answers(bin_dir: Path, url: str) -> bool:
    asked = subprocess.run([bin_dir / "pg_isready", "-q", "-d", url], check=False)
    return asked.returncode == 0


def _unprivileged() -> tuple[int, int]:
    """PostgreSQL refuses to run as root: the package's own user then, or nobody."""
    if os.geteuid() != 0:
        return os.getuid(), os.getgid()
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    raise RuntimeError("neither a user postgres nor a user nobody is here")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
