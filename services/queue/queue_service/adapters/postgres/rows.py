"""Rows of many posts, read by name.

Reading a column by name takes ten times as long from SQLAlchemy's rows as from plain objects, and every post would pay
for it several times.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Result


def plain(result: Result[Any]) -> Iterator[SimpleNamespace]:
    columns = tuple(result.keys())
    return (SimpleNamespace(**dict(zip(columns, row, strict=True))) for row in result)


def by_slot(result: Result[Any]) -> list[list[SimpleNamespace]]:
    """Groups rows of slots joined with their targets by slot."""
    slots: dict[tuple[str, str], list[SimpleNamespace]] = {}
    for row in plain(result):
        slots.setdefault((row.organization_id, row.id), []).append(row)
    return list(slots.values())
