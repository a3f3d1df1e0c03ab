"""Reads PostgreSQL's write-ahead log by pg_waldump: what was written, exactly, by database, table and index.

The statistics views would cost ten seconds, after which idle backends report, and say nothing of index entries.
"""

import asyncio
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from devstack.servers.binaries import postgres_programs, unprivileged_uid

Relation = tuple[str, str]
"""Database and relation: ids in a log, names once they are known."""

_RECORD = re.compile(
    r"rmgr: (\w+) +len \(rec/tot\): *\d+/ *(\d+), tx: *(\d+),.*? "
    r"desc: ([A-Z_]+)(?:\+INIT)?(.*?)(?:rel \d+/(\d+)/(\d+)|$)"
)
_ROWS = re.compile(r"ntuples: (\d+)")
_OF_ONE_ROW = {"INSERT": "inserted", "UPDATE": "updated", "HOT_UPDATE": "hot", "DELETE": "deleted", "LOCK": "locked"}
_NO_TRANSACTION = "0"


@dataclass(slots=True)
class Written:
    """Sums of the records in a stretch of the log."""

    bytes: Counter[str] = field(default_factory=Counter)
    """By database; commits count to the database that the transaction has written to."""
    commits: Counter[str] = field(default_factory=Counter)
    inserted: Counter[Relation] = field(default_factory=Counter)
    updated: Counter[Relation] = field(default_factory=Counter)
    """Without the HOT updates."""
    hot: Counter[Relation] = field(default_factory=Counter)
    deleted: Counter[Relation] = field(default_factory=Counter)
    locked: Counter[Relation] = field(default_factory=Counter)
    entries: Counter[Relation] = field(default_factory=Counter)
    """Entries of B-tree indexes."""


def read(lines: Iterable[str]) -> Written:
    """Adds up the lines of pg_waldump."""
    found = Written()
    databases: dict[str, str] = {}
    for line in lines:
        if match := _RECORD.match(line):
            manager, size, transaction, action, details, database, relation = match.groups()
            if database is None:
                database = databases.get(transaction, "")
            elif transaction != _NO_TRANSACTION:
                databases[transaction] = database
            found.bytes[database] += int(size)
            _add(found, manager, action, details, (database, relation or ""))
    return found


def _add(found: Written, manager: str, action: str, details: str, relation: Relation) -> None:
    match manager, action:
        case "Heap", "INSERT" | "UPDATE" | "HOT_UPDATE" | "DELETE" | "LOCK":
            getattr(found, _OF_ONE_ROW[action])[relation] += 1
        case "Heap2", "MULTI_INSERT":
            rows = _ROWS.search(details)
            found.inserted[relation] += int(rows[1]) if rows else 0
        case "Btree", "INSERT_LEAF" | "INSERT_POST":
            found.entries[relation] += 1
        case "Btree", "SPLIT_L" | "SPLIT_R" if "level: 0," in details:
            found.entries[relation] += 1  # A leaf is split by the entry that did not fit; the record carries both.
        case "Transaction", "COMMIT":
            found.commits[relation[0]] += 1
        case _:
            pass


def named(found: Written, names: Mapping[Relation, Relation]) -> Written:
    """Returns the same by names; an index is added to its table. Catalogs and what has gone stay out of the tables."""
    by_table = {kind: Counter[Relation]() for kind in ("inserted", "updated", "hot", "deleted", "locked", "entries")}
    for kind, counts in by_table.items():
        for relation, number in getattr(found, kind).items():
            if relation in names:
                counts[names[relation]] += number
    databases = {ids[0]: name[0] for ids, name in names.items()}
    return Written(bytes=_renamed(found.bytes, databases), commits=_renamed(found.commits, databases), **by_table)


def _renamed(counts: Mapping[str, int], names: Mapping[str, str]) -> Counter[str]:
    renamed = Counter[str]()
    for database, number in counts.items():
        renamed[names.get(database, "other")] += number
    return renamed


class Log:
    """The log of a running server."""

    def __init__(self, cluster: Path, urls: Mapping[str, str]) -> None:
        """`cluster` is the server's data folder, `urls` are the databases whose relations get names."""
        self._folder = cluster / "pg_wal"
        self._urls = urls

    async def position(self) -> str:
        connection = await asyncpg.connect(next(iter(self._urls.values())))
        # What a position is behind must be on disk, or pg_waldump does not find it.
        position: str = await connection.fetchval("select pg_current_wal_flush_lsn()::text")
        await connection.close()
        return position

    async def written(self, start: str, end: str) -> Written:
        program = postgres_programs(unprivileged_uid()) / "pg_waldump"
        command = [str(program), "-p", str(self._folder), "-s", start, "-e", end]
        return named(await asyncio.to_thread(_read, command), await self._names())

    async def _names(self) -> Mapping[Relation, Relation]:
        names: dict[Relation, Relation] = {}
        for service, url in self._urls.items():
            connection = await asyncpg.connect(url)
            for database, file, table in await connection.fetch(_NAMES):
                names[str(database), str(file)] = (service, table)
            await connection.close()
        return names


def _read(command: Sequence[str]) -> Written:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = read(process.stdout)
    assert process.returncode == 0, "pg_waldump has failed"
    return found


_NAMES = """
    select database.oid, pg_relation_filenode(relation.oid), coalesce(toasted.relname, owner.relname, relation.relname)
    from pg_class as relation
    left join pg_index on indexrelid = relation.oid
    left join pg_class as owner on owner.oid = indrelid
    left join pg_class as toasted on toasted.reltoastrelid in (relation.oid, owner.oid)
    cross join pg_database as database
    where database.datname = current_database() and relation.relkind in ('r', 'i', 't')
        and (coalesce(toasted.relnamespace, owner.relnamespace, relation.relnamespace) = 'public'::regnamespace)
"""
