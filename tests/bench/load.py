"""Plain calls: wrk, and what it counted."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.processes import cpu_s, pinned

_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


@dataclass(frozen=True, slots=True)
class Calls:
    """One run. Times in milliseconds; `cpu_us`: of the measured process, a call."""

    rps: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    failed: int


def calls(
    url: str,
    *,
    core: int,
    connections: int,
    seconds: int,
    pid: int | None = None,
    headers: Mapping[str, str] | None = None,
    script: str | None = None,
) -> Calls:
    """Loads `url` with wrk for `seconds`; `pid`: whose processor time is counted."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    for name, value in (headers or {}).items():
        command += ["-H", f"{name}: {value}"]
    if script:
        command += ["-s", script]
    before = cpu_s(pid) if pid else 0.0
    out = subprocess.run(
        pinned(core, [*command, url]), capture_output=True, text=True, timeout=seconds + 30
    )
    used = cpu_s(pid) - before if pid else 0.0
    if out.returncode:
        raise RuntimeError(f"wrk failed: {out.stderr or out.stdout}")
    return _parse(out.stdout, used)


def _parse(text: str, cpu_used_s: float) -> Calls:
    count = int(_found(r"(\d+) requests in", text))
    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text
    )
    failed = sum(map(int, errors.groups())) if errors else 0
    other = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return Calls(
        rps=float(_found(r"Requests/sec:\s+([\d.]+)", text)),
        p50_ms=_ms(_found(r"(?m)^ +50% +(\S+)", text)),
        p99_ms=_ms(_found(r"(?m)^ +99% +(\S+)", text)),
        cpu_us=cpu_used_s / count * 1e6 if count else 0.0,
        failed=failed + (int(other.group(1)) if other else 0),
    )


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"wrk did not say {pattern!r}:\n{text}")
    return found.group(1)


def _ms(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    assert found is not None, text
    return float(found.group(1)) * _UNITS[found.group(2)]
