"""What Debian and Ubuntu give: missing system packages, this machine's mirror, packages of another suite.

Only `make test` and the making of a base image come here; `make run` installs no system package.
"""

import os
import shutil
import tempfile
from pathlib import Path

from infra.setup import say


def is_here() -> bool:
    """Whether this machine has apt, and we may use it."""
    return shutil.which("apt-get") is not None and os.getuid() == 0


def install(packages: list[str]) -> None:
    """Install system packages. Raises StepFailed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with say.step("apt-get update"):
        say.run(["apt-get", "update", "-q"], env=environment, timeout_s=600)
    with say.step(f"apt-get install {' '.join(packages)}"):
        say.run(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
            env=environment,
            timeout_s=1800,
        )


def mirror() -> str | None:
    """The archive that this machine's apt takes Debian's own packages from; None on other systems."""
    listed = say.output(
        [
            *("apt-get", "indextargets", "--format", "$(SITE) $(REPO_URI)"),
            *("Created-By: Packages", "Origin: Debian", "Component: main"),
        ]
    )
    for line in (listed or "").splitlines():
        uri = line.split()[-1].rstrip("/")
        if uri.startswith(("http://", "https://")) and "security" not in uri:
            return uri
    return None


def unpack(package: str, suite: str, into: Path) -> None:
    """Unpack `package` of another suite below `into`, without installing it. Raises StepFailed.

    An apt of its own, in a directory of its own, so that the machine never hears of that suite.
    """
    archive = mirror()
    if archive is None:
        raise say.StepFailed(f"apt knows no Debian archive here, so {package} cannot be fetched")
    with tempfile.TemporaryDirectory(prefix="alcove-apt-") as name:
        place = Path(name)
        for directory in ("lists/partial", "cache/archives/partial", "parts"):
            (place / directory).mkdir(parents=True)
        keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
        source = f"deb [signed-by={keyring}] {archive} {suite} main\n"
        (place / "sources.list").write_text(source)
        (place / "status").touch()
        options = {
            "Dir::Etc::SourceList": place / "sources.list",
            "Dir::Etc::SourceParts": place / "parts",
            "Dir::State::Lists": place / "lists",
            "Dir::State::Status": place / "status",
            "Dir::Cache": place / "cache",
            "APT::Sandbox::User": "root",
        }
        settings = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        say.run(["apt-get", *settings, "update", "-q"], timeout_s=300)
        say.run(["apt-get", *settings, "download", "-q", package], cwd=place, timeout_s=300)
        (file,) = place.glob("*.deb")
        say.run(["dpkg-deb", "-x", str(file), str(into)])
