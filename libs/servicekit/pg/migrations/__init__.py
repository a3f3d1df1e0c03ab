"""Migrations of one service's database: numbered files, run once, under a lock.

A service keeps `0001_<words>.py`, `0002_<words>.py`, ... in its `adapters/postgres/migrations` package. A start checks
the revision without Alembic, whose import alone would cost most of a second.
"""

from servicekit.pg.migrations.schema import (
    SchemaState,
    SchemaTooOld,
    UnknownRevision,
    check,
    newest,
    pending,
    plan,
    revision,
    state,
    upgrade,
)

__all__ = [
    "SchemaState",
    "SchemaTooOld",
    "UnknownRevision",
    "check",
    "newest",
    "pending",
    "plan",
    "revision",
    "state",
    "upgrade",
]
