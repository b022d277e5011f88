"""The data directory of `alcove run`: secrets made once, a port and a sockets directory remembered.

Nothing here starts anything.
"""

import errno
import fcntl
import hashlib
import json
import os
import secrets
import socket
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
SECRETS = ("service_secret", "deployment_secret", "gateway_sealing_key", "meter_sealing_key")
# sun_path holds 108 bytes with its ending zero (unix(7)); below the root lie
# "/t/<16>/<generation>/agent/.agent.sock.<pid>.<6>", and a socket's directory is opened by itself,
# so only what clients print and the engine mounts must stay short.
LONGEST_SOCKETS_ROOT = 40


class Trouble(Exception):
    """`alcove` cannot go on; the message says what to do."""


@dataclass
class Home:
    """An opened data directory. `state` is what later starts must find again."""

    data: Path
    state: dict[str, Any]
    _lock: IO[str] = field(repr=False)

    @property
    def deployment(self) -> str:
        """The name of this installation, in labels of everything it makes."""
        return str(self.state["deployment"])

    @property
    def sockets(self) -> Path:
        """The sockets root."""
        return Path(self.state["sockets"])

    @property
    def control(self) -> Path:
        """Where services listen for each other."""
        return self.sockets / "control"

    def secret_file(self, name: str) -> Path:
        """The file of one of SECRETS."""
        return self.data / "secrets" / name

    def save(self) -> None:
        """Keep `state`, all or nothing."""
        temporary = self.data / "state.json.new"
        with temporary.open("w") as file:
            file.write(json.dumps(self.state, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave the new name with nothing in it
        temporary.replace(self.data / "state.json")

    def close(self) -> None:
        """Let another `alcove run` have the directory."""
        self._lock.close()


def location() -> Path:
    """Where the data lies: ALCOVE_DATA_DIR, else data/ in the clone."""
    return Path(os.environ.get("ALCOVE_DATA_DIR") or ROOT / "data").absolute()


def open_home(data: Path, *, shared: bool = False) -> Home:
    """The data directory, made on first use; `shared`: only to look at, also while a run holds it.

    Raises Trouble when another run holds it, when it is someone else's or damaged, or when secrets
    are lost.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)
        for name in ("secrets", "logs", "tenants"):
            (data / name).mkdir(mode=0o700, exist_ok=True)
        lock = (data / "lock").open("a+") if shared else _lock(data / "lock")
    except PermissionError as error:
        me = f"{os.getuid()}:{os.getgid()}"
        raise Trouble(f"{error.filename} may not be written: chown -R {me} {data}") from None
    except OSError as error:
        raise Trouble(f"The data directory cannot be used: {_in_words(error)}") from None
    try:
        state = _state(data)
        home = Home(data, state, lock)
        state.setdefault("deployment", f"run-{secrets.token_hex(4)}")
        _secrets(home)
        if not shared:
            state["sockets"] = str(sockets_root(data, state.get("sockets")))
            home.save()
    except OSError as error:
        lock.close()
        raise Trouble(f"The data directory cannot be used: {_in_words(error)}") from None
    except BaseException:
        lock.close()
        raise
    return home


def _state(data: Path) -> dict[str, Any]:
    path = data / "state.json"
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Trouble(
            f"{path} is damaged; it says which containers and volumes belong to this data.\n"
            f"Put it back from a backup. To start anew without the old data: rm -r {data}"
        )
    return found


def _in_words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _lock(path: Path) -> IO[str]:
    lock = path.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        lock.seek(0)
        owner = lock.read().strip() or "another process"
        lock.close()
        raise Trouble(f"Alcove already runs here ({owner}). Ctrl-C there ends it.") from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


def _secrets(home: Home) -> None:
    """Make each secret once. A lost or changed one is told, never replaced: data is sealed with it."""
    known = home.state.setdefault("secrets", {})
    for name in SECRETS:
        path = home.secret_file(name)
        if name not in known and not path.exists():
            write_private(path, secrets.token_hex(32) + "\n")
        if not path.exists():
            raise Trouble(
                f"{path} is gone, and what is stored was sealed with it.\n"
                f"Put it back from a backup. To start anew without the old data: rm -r {home.data}"
            )
        path.chmod(0o600)
        fingerprint = hashlib.sha256(path.read_bytes().strip()).hexdigest()[:16]
        if known.setdefault(name, fingerprint) != fingerprint:
            raise Trouble(
                f"{path} is not the secret that this data was made with.\n"
                f"Put the old one back. To start anew without the old data: rm -r {home.data}"
            )


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner ever could read; it must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def sockets_root(data: Path, remembered: str | None) -> Path:
    """A short directory of our own for sockets, the remembered one where it still can be had.

    Outside of the clone, whose path may be of any length; in the user's runtime directory, else in
    the temporary one under a name that says whose it is. A directory of someone else is never taken.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    name = hashlib.sha256(str(data).encode()).hexdigest()[:8]
    candidates = [Path(remembered)] if remembered else []
    if runtime:
        candidates.append(Path(runtime) / f"alcove-{name}")
    for place in ("/tmp", tempfile.gettempdir()):  # noqa: S108 (its owner is checked)
        candidates.append(Path(place) / f"alcove-{os.getuid()}-{name}")
        candidates.append(Path(place) / f"alcove-{secrets.token_hex(6)}")
    for path in candidates:
        if len(os.fsencode(path)) <= LONGEST_SOCKETS_ROOT and _own_directory(path):
            return path
    raise Trouble(
        f"no short directory of our own for sockets: tried {', '.join(map(str, candidates))}"
    )


def _own_directory(path: Path) -> bool:
    """Whether `path` is, or could be made, a real directory that belongs to us."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


FIRST_PORT = 8000


def free_port(remembered: int | None, first: int = FIRST_PORT, tries: int = 100) -> int:
    """The remembered port where it is free, else the first free one from `first`. Raises Trouble."""
    candidates = list(range(first, first + tries))
    if remembered:
        candidates.insert(0, remembered)
    for port in candidates:
        if _is_free(port):
            return port
    raise Trouble(f"no port from {first} to {first + tries - 1} is free on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
