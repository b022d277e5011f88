"""Alembic's way in; see infra.kit.migrate."""

from infra.kit import migrate
from metering_proxy.models import metadata

migrate.run_env(metadata)
