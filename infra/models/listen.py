"""Where a local model server may listen: a unix socket, or a port of this very machine."""

import argparse
import ipaddress
import os
import socket

from infra.kit import address, unix
from infra.kit.errors import AlcoveError


def from_command_line(what: str) -> address.Address:
    """The address after `--listen`; the process exits with the reason where it is not a private one."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--listen", required=True, help="unix:///path or http://127.0.0.1:port")
    url = parser.parse_args().listen
    try:
        return private(url)
    except AlcoveError as error:
        parser.error(str(error))


def private(url: str) -> address.Address:
    """The address, if only this machine can reach it. Raises `invalid`: these servers ask for no key."""
    where = address.parse(url)
    if not where.is_unix and not ipaddress.ip_address(where.host or "").is_loopback:
        raise AlcoveError("invalid", f"{url}: a local model listens on a unix socket or 127.0.0.1")
    return where


def bind(where: address.Address) -> socket.socket:
    """A listening socket at `where`."""
    if where.path is not None:
        return unix.bind(where.path)
    listener = socket.create_server((where.host, where.port), backlog=128)
    listener.setblocking(False)
    return listener


def threads() -> int:
    """How many threads a model may use: the cores this process may run on, at most four."""
    return min(4, len(os.sched_getaffinity(0)))


def sleep_while_waiting() -> None:
    """Let OpenMP's threads sleep at their barriers. Call it before anything loads OpenMP.

    They spin by default, and with the cores busy elsewhere one token then waits for a whole slice
    of the scheduler at each of hundreds of barriers (tried at a load of 8 on two cores: 1 token a
    second spinning, 30 sleeping).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
