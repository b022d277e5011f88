"""LIGHT. The only code that opens or binds a unix socket.

A tenant can put a symbolic link, a foreign socket or a stranger's listener where its own socket is
expected. So nothing is reached by path: the socket is opened with O_PATH|O_NOFOLLOW, checked to be
a socket of the expected owner, and connected through /proc/self/fd/N, which also keeps any path
length under the 108 bytes of sockaddr_un (unix(7)).
"""

import asyncio
import contextlib
import os
import socket
import stat
from pathlib import Path

BACKLOG = 4096
_RETRY_DELAYS_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3)


class NotConnected(OSError):
    """Nobody answers at this socket (absent, refused, or its queue is full)."""


class NotTrusted(OSError):
    """What lies at the path is not a socket of the expected owner; nothing was sent to it."""


def open_directory(path: Path) -> int:
    """A descriptor of the directory at `path`, whose last part may not be a symbolic link."""
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def bind(path: Path, *, mode: int = 0o660) -> socket.socket:
    """A listening, non-blocking socket at `path`, in place of a dead one; its directory must exist.

    Bound under a temporary name and renamed, so that a connecting client never sees a half-made
    socket and an old inode is replaced in one step.
    """
    directory = open_directory(path.parent)
    temporary = f".{path.name}.{os.getpid()}.{os.urandom(3).hex()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{temporary}")
        os.chmod(f"/proc/self/fd/{directory}/{temporary}", mode)
        listener.listen(BACKLOG)
        os.rename(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    finally:
        os.close(directory)
    return listener


async def connect(
    path: Path, *, owner_uid: int | None = None, timeout_s: float = 5.0
) -> socket.socket:
    """A connected, non-blocking socket to the listener at `path`.

    `owner_uid`: the only uid that may own the socket. Raises NotTrusted where the path is not such
    a socket, NotConnected where nobody takes the connection within `timeout_s`; EAGAIN (a full
    backlog, unix(7)) is tried again with back-off.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    attempt = 0
    while True:
        try:
            return await _connect_once(path, owner_uid, deadline - loop.time())
        except BlockingIOError as full:
            delay = _RETRY_DELAYS_S[min(attempt, len(_RETRY_DELAYS_S) - 1)]
            attempt += 1
            if loop.time() + delay >= deadline:
                raise NotConnected(
                    full.errno, f"{path}: the queue of its listener is full"
                ) from full
            await asyncio.sleep(delay)
        except (ConnectionRefusedError, FileNotFoundError) as gone:
            raise NotConnected(gone.errno, f"{path}: nobody listens there") from gone


async def _connect_once(path: Path, owner_uid: int | None, timeout_s: float) -> socket.socket:
    directory = open_directory(path.parent)
    try:
        node = os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    finally:
        os.close(directory)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        found = os.fstat(node)
        if not stat.S_ISSOCK(found.st_mode):
            raise NotTrusted(f"{path} is not a socket")
        if owner_uid is not None and found.st_uid != owner_uid:
            raise NotTrusted(f"{path} belongs to uid {found.st_uid}, not {owner_uid}")
        # A unix connect either succeeds, fails or says EAGAIN at once; it never stays in progress.
        client.connect(f"/proc/self/fd/{node}")
        return client
    except BaseException:
        client.close()
        raise
    finally:
        os.close(node)


async def open_stream(
    path: Path, *, owner_uid: int | None = None, timeout_s: float = 5.0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Reader and writer of a connection to the listener at `path`; errors as `connect`."""
    client = await connect(path, owner_uid=owner_uid, timeout_s=timeout_s)
    try:
        return await asyncio.open_unix_connection(sock=client, limit=1 << 20)
    except BaseException:
        client.close()
        raise
