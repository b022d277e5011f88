"""The PostgreSQL stand-in keeps the official image's contract, as hardened as Compose runs it."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.setup import images
from tests.waiting import until_sync

pytestmark = pytest.mark.docker
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def image(docker_client: Any) -> str:
    images.build(images.POSTGRES)
    return images.POSTGRES[0]


@pytest.fixture
def cluster(docker_client: Any, image: str) -> Iterator[Run]:
    """Starts a server on one volume; called again, the next server finds what the last one left."""
    volume = docker_client.volumes.create(name=f"test-postgres-{secrets.token_hex(4)}")
    containers = []

    def run(environment: dict[str, str], *mounts: str) -> Any:
        container = docker_client.containers.run(
            image,
            detach=True,
            environment=environment,
            user="999:999",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            network_mode="none",
            tmpfs={"/tmp": "mode=1777", "/var/run/postgresql": "uid=999,gid=999,mode=0775"},
            volumes=[f"{volume.name}:/var/lib/postgresql/data", *mounts],
        )
        containers.append(container)
        return container

    yield run
    for container in containers:
        container.remove(force=True, v=True)
    volume.remove()


def query(container: Any, user: str, database: str, sql: str) -> str:
    command = ["psql", "-At", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", database, "-c", sql]
    code, output = container.exec_run(command)
    assert code == 0, output
    text: str = output.decode().strip()
    return text


def ready(container: Any) -> bool:
    code: int = container.exec_run(["pg_isready", "-q", "-h", "127.0.0.1"]).exit_code
    return code == 0


def test_cluster_is_made_from_secret_files_and_found_again(cluster: Run, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from-a-file\n")
    (tmp_path / "meter").write_text("the-meters-own\n")
    (tmp_path / "meter").chmod(0o644)
    (tmp_path / "init.sql").write_text(
        "CREATE TABLE made (at_start int); INSERT INTO made VALUES (7)"
    )
    (tmp_path / "password").chmod(0o644)
    tmp_path.chmod(0o755)
    mounts = [
        f"{tmp_path}/password:/run/secret:ro",
        f"{tmp_path}/meter:/run/meter:ro",
        f"{tmp_path}/init.sql:/docker-entrypoint-initdb.d/1.sql:ro",
    ]
    settings = {
        "POSTGRES_USER": "boss",
        "POSTGRES_DB": "shop",
        "POSTGRES_PASSWORD_FILE": "/run/secret",
        "ALCOVE_METER_DATABASE_PASSWORD_FILE": "/run/meter",
    }
    first = cluster(settings, *mounts)
    until_sync(lambda: ready(first), timeout_s=30)
    assert query(first, "boss", "shop", "SELECT at_start FROM made") == "7"
    login = "PGPASSWORD=from-a-file psql -h 127.0.0.1 -U boss -At -c 'SELECT 1' shop"
    assert first.exec_run(["sh", "-c", login]).exit_code == 0
    assert first.exec_run(["sh", "-c", login.replace("from-a-file", "wrong")]).exit_code != 0
    meter = "PGPASSWORD=the-meters-own psql -h 127.0.0.1 -U meter -At -c 'SELECT 1' "
    assert first.exec_run(["sh", "-c", meter + "meter"]).exit_code == 0
    first.stop(timeout=10)
    assert first.wait()["StatusCode"] == 0

    second = cluster({})
    until_sync(lambda: ready(second), timeout_s=30)
    assert query(second, "boss", "shop", "SELECT count(*) FROM made") == "1"


def test_cluster_begins_anew_when_its_making_was_cut_short(cluster: Run) -> None:
    settings = {"POSTGRES_PASSWORD": "x"}
    first = cluster(settings)
    until_sync(lambda: ready(first), timeout_s=30)
    # As if a kill had come before the last file of the new cluster was in its place.
    assert first.exec_run(["rm", "/var/lib/postgresql/data/PG_VERSION"]).exit_code == 0
    first.kill()
    second = cluster(settings)
    until_sync(lambda: ready(second), timeout_s=30)
    assert query(second, "postgres", "postgres", "SELECT 1") == "1"


def test_cluster_is_refused_when_it_would_have_no_password(cluster: Run) -> None:
    container = cluster({})
    assert container.wait(timeout=30)["StatusCode"] == 1
    assert b"POSTGRES_PASSWORD" in container.logs()
