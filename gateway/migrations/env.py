"""Alembic's entry: hands our tables to the shared runner."""

from gateway.models import metadata
from infra.kit.migrate import run_env

run_env(metadata)
