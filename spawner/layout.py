"""The directories of one generation: where they are, who may write in them, what lies there.

    <sockets root>/t/<tenant>/<generation>/agent/   the agent binds agent.sock here
    <sockets root>/t/<tenant>/<generation>/meter/   the meter binds meter.sock; key, instance_secret

As root, or as a member of the agents' group, directories are `spawner:<agents' group> 2770` and agents
have a uid of their own; else everything belongs to the operator's own uid and group.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_THROUGH = 0o2771  # others may pass to a name they know, and list nothing
_SHARED = 0o2770
_SEALED = 0o2750
_SEALED_OWN = 0o2550  # where the agent has our own uid, our own write bit must go too


@dataclass(frozen=True, slots=True)
class Owner:
    """Uid and gid of agents, and whether they differ from the spawner's own uid."""

    uid: int
    gid: int
    apart: bool


def owner_for(uid: int, gid: int) -> Owner:
    """Agents as `uid:gid` where this process may hand directories to that group, else as itself."""
    if os.geteuid() == 0 or gid in os.getgroups() or gid == os.getegid():
        return Owner(uid, gid, apart=uid != os.geteuid())
    return own()


def own() -> Owner:
    """This process's own uid and gid."""
    return Owner(os.geteuid(), os.getegid(), apart=False)


class Layout:
    """Makes, seals and removes the directories under one sockets root."""

    def __init__(self, root: Path, owner: Owner) -> None:
        self.root, self.owner = root, owner

    def generation(self, tenant: str, generation: int) -> Path:
        """The directory of one generation."""
        return self.root / "t" / tenant / str(generation)

    def agent(self, tenant: str, generation: int) -> Path:
        """Where the agent binds its socket."""
        return self.generation(tenant, generation) / "agent"

    def meter(self, tenant: str, generation: int) -> Path:
        """Where the meter binds the tenant's socket, and where the secrets lie."""
        return self.generation(tenant, generation) / "meter"

    def socket(self, tenant: str, generation: int) -> Path:
        """The agent's socket."""
        return self.agent(tenant, generation) / "agent.sock"

    def url(self, tenant: str, generation: int) -> str:
        """The agent's address."""
        return f"unix://{self.socket(tenant, generation)}"

    def make(self, tenant: str, generation: int) -> None:
        """Makes the two directories, empty, in place of whatever a start that was cut short left."""
        self._directory(self.root, _THROUGH)
        self._directory(self.root / "t", _THROUGH)
        self._directory(self.root / "t" / tenant, _THROUGH)
        self._directory(self.generation(tenant, generation), _THROUGH)
        _remove(self.agent(tenant, generation))
        self._directory(self.agent(tenant, generation), _SHARED)
        self._directory(self.meter(tenant, generation), _SHARED)

    def write_secrets(self, tenant: str, generation: int, *, key: str, secret: str) -> None:
        """Writes `key` and `instance_secret`, readable by the agents' group and by nobody else."""
        directory = self.meter(tenant, generation)
        for name, text in (("key", key), ("instance_secret", secret)):
            temporary = directory / f".{name}.{os.getpid()}"
            temporary.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(temporary, flags, 0o440), "w") as file:
                os.fchown(file.fileno(), -1, self.owner.gid)
                os.fchmod(file.fileno(), 0o440)
                file.write(text)
            temporary.rename(directory / name)

    def seal(self, tenant: str, generation: int) -> None:
        """Takes the write bits of the agent's directory away: from now on nothing can be made, renamed
        or linked there, and the socket still accepts."""
        self.agent(tenant, generation).chmod(_SEALED if self.owner.apart else _SEALED_OWN)

    def remove(self, tenant: str, generation: int) -> None:
        """Removes the directories of one generation, and the tenant's when it was the last."""
        _remove(self.generation(tenant, generation))
        with contextlib.suppress(OSError):
            (self.root / "t" / tenant).rmdir()

    def generations(self) -> Iterator[tuple[str, int]]:
        """Every (tenant, generation) that has a directory."""
        for directory in (self.root / "t").glob("*/*"):
            if directory.name.isdigit():
                yield directory.parent.name, int(directory.name)

    def _directory(self, path: Path, mode: int) -> None:
        path.mkdir(exist_ok=True, parents=path == self.root)
        found = path.stat()
        if found.st_uid != os.geteuid() and os.geteuid() != 0:
            return  # made for us by whoever set the machine up, with the modes of their choice
        if found.st_gid != self.owner.gid:
            os.chown(path, -1, self.owner.gid)
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


def _remove(path: Path) -> None:
    """Removes a tree that a tenant could write in: links in it are unlinked and never followed."""
    for directory in (path, path / "agent"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                os.fchmod(opened, 0o700)
            finally:
                os.close(opened)
    shutil.rmtree(path, ignore_errors=True)
