"""Alembic's way in; see infra.kit.migrate."""

from infra.kit.migrate import run_env
from spawner.models import metadata

run_env(metadata)
