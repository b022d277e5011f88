"""Unix sockets: whatever a tenant puts at the path, nobody is led astray."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from infra.kit import unix


async def test_connect_refuses_when_the_socket_is_a_symbolic_link(tmp_path: Path) -> None:
    with unix.bind(tmp_path / "secret.sock"):
        (tmp_path / "agent.sock").symlink_to(tmp_path / "secret.sock")
        with pytest.raises(unix.NotTrusted):
            await unix.connect(tmp_path / "agent.sock")


async def test_connect_refuses_when_the_directory_is_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    with unix.bind(tmp_path / "real" / "agent.sock"):
        (tmp_path / "link").symlink_to(tmp_path / "real")
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            await unix.connect(tmp_path / "link" / "agent.sock")


async def test_connect_refuses_when_a_stranger_owns_the_socket(tmp_path: Path) -> None:
    with unix.bind(tmp_path / "agent.sock"), pytest.raises(unix.NotTrusted):
        await unix.connect(tmp_path / "agent.sock", owner_uid=os.getuid() + 1)


async def test_connect_refuses_when_the_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "agent.sock").write_text("x")
    with pytest.raises(unix.NotTrusted):
        await unix.connect(tmp_path / "agent.sock")


async def test_connect_says_not_connected_when_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(unix.NotConnected):
        await unix.connect(tmp_path / "agent.sock")
    listener = unix.bind(tmp_path / "agent.sock")
    listener.close()
    with pytest.raises(unix.NotConnected):
        await unix.connect(tmp_path / "agent.sock")


async def test_connect_waits_when_the_backlog_is_full(tmp_path: Path) -> None:
    raw = socket.socket(socket.AF_UNIX)
    raw.bind(str(tmp_path / "agent.sock"))
    raw.listen(0)
    first = await unix.connect(tmp_path / "agent.sock")
    with pytest.raises(unix.NotConnected):
        await unix.connect(tmp_path / "agent.sock", timeout_s=0.05)
    waiting = asyncio.create_task(unix.connect(tmp_path / "agent.sock"))
    await asyncio.sleep(0)
    raw.accept()[0].close()
    (await waiting).close()
    first.close()
    raw.close()


async def test_bind_replaces_a_dead_socket_and_leaves_no_other_file(tmp_path: Path) -> None:
    unix.bind(tmp_path / "agent.sock").close()
    with unix.bind(tmp_path / "agent.sock"):
        (await unix.connect(tmp_path / "agent.sock")).close()
        assert [p.name for p in tmp_path.iterdir()] == ["agent.sock"]
