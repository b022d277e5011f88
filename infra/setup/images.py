"""Images: a base that can be had, and what is built on it.

    python -m infra.setup.images agent     the tenant's image, as `make run` needs it
    python -m infra.setup.images all       everything that Docker Compose starts

The base is ALCOVE_BASE_IMAGE, else one made here before, else the official one from a registry, else
one made here from Debian's packages. An image carries a label with the hash of its sources, so
building an unchanged one costs one question to the engine.
"""

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from infra.setup import debian, say

ROOT = Path(__file__).resolve().parents[2]
OFFICIAL_BASE = "python:3.11-slim-bookworm"
OWN_BASE = "alcove-base:bookworm"
LABEL = "alcove.sources"
HOST_AUTHORITIES = Path("/usr/local/share/ca-certificates")

# tag, Dockerfile, what is copied into it
Image = tuple[str, str, tuple[str, ...]]
AGENT: Image = (
    "alcove-agent:local",
    "agent_image/Dockerfile",
    ("requirements/agent.lock", "infra/__init__.py", "infra/kit", "agent_image/agent"),
)
SERVICES: Image = (
    "alcove-services:local",
    "infra/images/services.Dockerfile",
    (
        *("requirements/run.lock", "requirements/node.lock", "package-lock.json"),
        *("infra/images", "infra/kit", "metering_proxy", "spawner", "gateway"),
    ),
)
MODELS: Image = (
    "alcove-models:local",
    "infra/images/models.Dockerfile",
    ("requirements", "infra/images/healthcheck.py", "infra/kit", "infra/models"),
)
POSTGRES: Image = (
    "alcove-postgres:local",
    "infra/images/postgres.Dockerfile",
    ("infra/images/postgres-entrypoint.sh", "infra/images/postgres-roles.sh"),
)


def build_agent() -> None:
    """Make the tenant's image, if an engine answers. Raises StepFailed where it answers but cannot."""
    if engine_version() is None:
        return
    build(AGENT)


def build_all() -> None:
    """Make every image that Docker Compose starts. Raises StepFailed, also without an engine."""
    if engine_version() is None:
        raise say.StepFailed(
            "No Docker engine answers. Start it, or install Docker Engine ≥ 20.10."
        )
    for image in (AGENT, SERVICES, MODELS, POSTGRES):
        build(image)


def build(image: Image) -> None:
    """Make one image, unless one of the same sources on the same base is there. Raises StepFailed."""
    tag, dockerfile, sources = image
    base = base_image()
    sum_of_sources = fingerprint([dockerfile, *sources], base)
    before = say.output(["docker", "image", "inspect", tag, "--format", "{{.Id}}"])
    if _label(tag) == sum_of_sources:
        return
    arguments = {"BASE": base}
    if os.environ.get("PIP_INDEX_URL"):
        arguments["PIP_INDEX_URL"] = os.environ["PIP_INDEX_URL"]
    if image is POSTGRES and os.environ.get("ALCOVE_POSTGRES"):
        arguments["POSTGRES"] = os.environ["ALCOVE_POSTGRES"]
    options = [part for pair in arguments.items() for part in ("--build-arg", "=".join(pair))]
    with say.step(f"Build the image {tag}"):
        say.run(
            [
                *("docker", "build", "--file", dockerfile, "--tag", tag),
                *("--label", f"{LABEL}={sum_of_sources}", *options, "."),
            ],
            cwd=ROOT,
        )
    if before:
        # Refused while a container still runs it, or where the new one is the same.
        say.succeeds(["docker", "image", "rm", before])


def base_image() -> str:
    """The name of a base with Python ≥ 3.11 that this engine has. Raises StepFailed, with remedies."""
    wanted = os.environ.get("ALCOVE_BASE_IMAGE")
    for name in (wanted,) if wanted else (OWN_BASE, OFFICIAL_BASE):
        if say.succeeds(["docker", "image", "inspect", name]):
            return name
    with (
        contextlib.suppress(say.StepFailed),
        say.step(f"Pull the base image {wanted or OFFICIAL_BASE}"),
    ):
        say.run(["docker", "pull", wanted or OFFICIAL_BASE], timeout_s=600)
        return wanted or OFFICIAL_BASE
    if wanted:
        raise say.StepFailed(f"The base image {wanted} (ALCOVE_BASE_IMAGE) cannot be had")
    _make_base()
    return OWN_BASE


def engine_version() -> str | None:
    """The version of the engine that answers, None where none does."""
    return say.output(["docker", "version", "--format", "{{.Server.Version}}"], timeout_s=10)


def fingerprint(paths: list[str], *more: str) -> str:
    """One hash over the content of files and directories (below the repository's root) and `more`."""
    digest = hashlib.sha256("\0".join(more).encode())
    for name in paths:
        found = ROOT / name
        for file in sorted(found.rglob("*")) if found.is_dir() else [found]:
            if file.is_file() and "__pycache__" not in file.parts and "dist" not in file.parts:
                digest.update(f"\0{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:32]


def _make_base() -> None:
    """A minimal Debian 12 with Python, from the packages that this machine's own mirror serves."""
    if not shutil.which("mmdebstrap"):
        raise say.StepFailed(
            "No image registry answers, and mmdebstrap, which makes a base from Debian's packages,\n"
            "is not here. On Debian or Ubuntu: apt-get install mmdebstrap. Or name an image that\n"
            "this engine has, with Python ≥ 3.11: ALCOVE_BASE_IMAGE=…"
        )
    make = ["mmdebstrap", "--quiet", "--variant=minbase"]
    make += ["--include=python3,python3-venv,ca-certificates", *_authorities(), "bookworm", "-"]
    make += [archive] if (archive := debian.mirror()) else []
    # pip reads its own bundle unless told; the system's also has what _authorities added.
    change = "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt"
    with say.step(f"Make the base image {OWN_BASE} from Debian's packages (about a minute)"):
        say.run(
            ["sh", "-c", f"{shlex.join(make)} | docker import --change '{change}' - {OWN_BASE}"],
            timeout_s=900,
        )
        if not say.succeeds(["docker", "run", "--rm", "--network=none", OWN_BASE, "python3", "-V"]):
            subprocess.run(["docker", "rmi", OWN_BASE], capture_output=True, check=False)
            raise say.StepFailed("mmdebstrap made no usable base; it says why above")


def _authorities() -> list[str]:
    """Options that put this host's own certificate authorities into the base.

    Where TLS is inspected on its way out, nothing could be installed in an image without them.
    """
    if not HOST_AUTHORITIES.is_dir() or not any(HOST_AUTHORITIES.glob("*.crt")):
        return []
    copy = f'mkdir -p "$1{HOST_AUTHORITIES}" && cp {HOST_AUTHORITIES}/*.crt "$1{HOST_AUTHORITIES}/"'
    return [f'--customize-hook={copy} && chroot "$1" update-ca-certificates']


def _label(tag: str) -> str | None:
    inspect = [
        "docker",
        "image",
        "inspect",
        tag,
        "--format",
        f'{{{{index .Config.Labels "{LABEL}"}}}}',
    ]
    return say.output(inspect)


if __name__ == "__main__":
    say.main(build_all if sys.argv[1:] == ["all"] else build_agent)
