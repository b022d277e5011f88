"""Migrations: whoever comes first runs them, once; a broken one leaves the old schema whole."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, inspect
from sqlalchemy.exc import DatabaseError

from infra.kit import migrate, schema
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from tests.kit.processes import at_once

ENV = """
from infra.kit.migrate import run_env
from sqlalchemy import MetaData
run_env(MetaData())
"""
FIRST = """
revision, down_revision = "0001", None
from alembic import op
import sqlalchemy as sa
def upgrade():
    op.create_table("thing", sa.Column("id", sa.Integer, primary_key=True))
"""
SECOND = """
revision, down_revision = "0002", "0001"
from alembic import op
import sqlalchemy as sa
def upgrade():
    op.execute("CREATE TABLE ran (id INTEGER)")
    op.execute("INSERT INTO ran VALUES (1)")
    op.add_column("thing", sa.Column("size", sa.Integer))
"""
BROKEN = SECOND + '    op.execute("INSERT INTO nowhere VALUES (1)")\n'


def write_package(root: Path, name: str, *revisions: str) -> str:
    """A service's package with these revisions, importable from `root`."""
    versions = root / name / "migrations" / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    (root / name / "__init__.py").write_text("")
    (root / name / "migrations" / "env.py").write_text(ENV)
    for old in versions.glob("*.py"):
        old.unlink()
    for number, text in enumerate(revisions, 1):
        (versions / f"{number:04d}_step.py").write_text(text)
    return name


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[Path]:
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in [n for n in sys.modules if n.startswith("service_")]:
        del sys.modules[name]


def upgrade_in_process(url: str, root: str, package: str) -> None:
    """What `python -m <service> migrate` does."""
    sys.path.insert(0, root)

    async def run() -> None:
        db = Database(url)
        await migrate.upgrade(db, package)
        await db.close()

    asyncio.run(run())


async def columns(db: Database, table: str) -> set[str]:
    async with db.engine.connect() as connection:
        found = await connection.run_sync(lambda c: inspect(c).get_columns(table))
    return {column["name"] for column in found}


async def tables(db: Database) -> set[str]:
    async with db.engine.connect() as connection:
        return set(await connection.run_sync(lambda c: inspect(c).get_table_names()))


@pytest.mark.thorough
async def test_one_runs_and_all_succeed_when_four_processes_migrate_an_old_database(
    db: Database, packages: Path
) -> None:
    package = write_package(packages, "service_a", FIRST)
    await migrate.upgrade(db, package)
    write_package(packages, "service_a", FIRST, SECOND)
    url = db.engine.url.render_as_string(hide_password=False)
    assert await at_once(upgrade_in_process, url, str(packages), package) == [0, 0, 0, 0]
    async with db.read() as reading:
        assert await reading.value(sql("SELECT count(*) FROM ran")) == 1
    assert await columns(db, "thing") == {"id", "size"}
    assert await schema.at_head(db, package)


async def test_old_schema_stays_whole_when_a_migration_breaks(db: Database, packages: Path) -> None:
    package = write_package(packages, "service_b", FIRST)
    await migrate.upgrade(db, package)
    write_package(packages, "service_b", FIRST, BROKEN)
    with pytest.raises(DatabaseError):
        await migrate.upgrade(db, package)
    assert await columns(db, "thing") == {"id"}
    assert "ran" not in await tables(db)
    assert not await schema.at_head(db, package)
    write_package(packages, "service_b", FIRST, SECOND)
    await migrate.upgrade(db, package)
    assert await schema.at_head(db, package)


async def test_database_is_left_alone_when_a_newer_release_used_it(
    db: Database, packages: Path
) -> None:
    package = write_package(packages, "service_e", FIRST, SECOND)
    await migrate.upgrade(db, package)
    older = write_package(packages, "service_f", FIRST)
    with pytest.raises(AlcoveError, match="newer") as caught:
        await migrate.upgrade(db, older)
    assert (caught.value.code, caught.value.reason) == ("conflict", "newer_schema")
    assert await schema.at_head(db, package)


def test_refusal_is_a_sentence_when_the_database_cannot_be_opened(
    tmp_path: Path, packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = write_package(packages, "service_g", FIRST)
    (tmp_path / "x.db").write_text("this is not a database" * 500)
    with pytest.raises(SystemExit) as caught:
        migrate.main(Database(f"sqlite:///{tmp_path}/x.db"), package)
    assert caught.value.code == 1
    told = capsys.readouterr().err
    assert "x.db: " in told
    assert "(file is not a database)" in told
    assert "Traceback" not in told


async def test_drift_is_named_when_the_tables_in_code_differ(db: Database, packages: Path) -> None:
    await migrate.upgrade(db, write_package(packages, "service_c", FIRST))
    metadata = MetaData()
    same = Table("thing", metadata, Column("id", Integer, primary_key=True))
    alembic_own = Table(
        "alembic_version", metadata, Column("version_num", Integer, primary_key=True)
    )
    metadata.remove(alembic_own)
    assert await migrate.drift(db, metadata) == []
    same.append_column(Column("size", Integer))
    assert [change[0] for change in await migrate.drift(db, metadata)] == ["add_column"]


async def test_database_is_not_at_head_when_it_is_empty(db: Database, packages: Path) -> None:
    assert not await schema.at_head(db, write_package(packages, "service_d", FIRST))
