"""Databases at their newest revision, copied from one that is made once a process: migrating is slower than
most tests. That migrations are right is shown by the rooms' own tests of them."""

import shutil
import tempfile
from pathlib import Path

from sqlalchemy import make_url

from infra.kit import migrate
from infra.kit.db import Database

_HOME = tempfile.TemporaryDirectory(prefix="alcove-templates-")  # removed when the process ends


async def to_head(db: Database, package: str) -> None:
    """Brings `db` to the newest revision of `package`; by a copy where it is SQLite and not there yet."""
    path = Path(make_url(db.url).database or "") if db.is_sqlite else None
    if path is None or path.exists():
        await migrate.upgrade(db, package)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(await template(package), path)


async def template(package: str) -> Path:
    """An empty SQLite database of `package`, to be copied."""
    path = Path(_HOME.name) / f"{package}.db"
    if not path.exists():
        db = Database(f"sqlite:///{path}")
        await migrate.upgrade(db, package)
        await db.close()
    return path
