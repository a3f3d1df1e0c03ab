"""Counts the statements that PostgreSQL executes, by its own log: our build has no pg_stat_statements.

Each line is a message that a client waits for, so the count is also that of the round trips. It is turned on for a
phase of its own, since writing the log costs CPU time.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import asyncpg

from devstack.servers.postgres import EmbeddedPostgres

OPTIONS: Mapping[str, str] = {"log_line_prefix": "[%p %d] ", "log_parameter_max_length": "0"}
"""Settings of the server whose log is counted."""

_LINE = re.compile(r"\[(\d+) (\w+)\] LOG:  (?:statement|execute [^:]+): (.*)")
_BEGIN = ("begin", "start transaction")
_END = ("commit", "rollback;", "end")
_MARKED = "postgres"  # the database in which the phases are marked


@dataclass(slots=True)
class Counted:
    """The statements and transactions of a phase by database, and how often each text was executed."""

    statements: Counter[str] = field(default_factory=Counter)
    transactions: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)


def counted(lines: Iterable[str]) -> Counted:
    """Counts the lines of a log. A statement outside BEGIN and COMMIT is a transaction by itself."""
    found = Counted()
    inside: set[str] = set()
    for pid, database, text in _executed(lines):
        words = text.lower()
        found.statements[database] += 1
        found.texts[f"{database}: {text}"] += 1
        if words.startswith(_BEGIN):
            inside.add(pid)
            found.transactions[database] += 1
        elif words.startswith(_END):
            inside.discard(pid)
        elif pid not in inside:
            found.transactions[database] += 1
    return found


def _executed(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yields process, database and text of each statement; a text of several lines goes on behind tabs."""
    current: tuple[str, str, list[str]] | None = None
    for line in lines:
        if current and line.startswith("\t"):
            current[2].append(line.strip())
            continue
        if current:
            yield current[0], current[1], " ".join(current[2]).strip()
        match = _LINE.match(line)
        current = (match[1], match[2], [match[3].strip()]) if match and match[2] != _MARKED else None
    if current:
        yield current[0], current[1], " ".join(current[2]).strip()


class StatementLog:
    """Collects the lines of PostgreSQL's log; give `on_line` to the stack."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._mark = ""
        self._seen = asyncio.Event()

    def on_line(self, name: str, line: str) -> None:
        if name != "postgres":
            return
        self._lines.append(line)
        if self._mark and self._mark in line:
            self._seen.set()

    async def begin(self, postgres: EmbeddedPostgres) -> None:
        await _set(postgres, "all")
        self._lines.clear()

    async def end(self, postgres: EmbeddedPostgres) -> Counted:
        """Returns what was executed since `begin`, once the log has been read up to here."""
        self._mark, self._seen = "the phase ends here", asyncio.Event()
        connection = await asyncpg.connect(postgres.url())
        await connection.execute(f"select '{self._mark}'")
        async with asyncio.timeout(30):
            await self._seen.wait()
        await connection.close()
        self._mark = ""
        await _set(postgres, "none")
        return counted(self._lines)


async def _set(postgres: EmbeddedPostgres, which: str) -> None:
    connection = await asyncpg.connect(postgres.url())
    await connection.execute(f"alter system set log_statement = '{which}'")
    await connection.execute("select pg_reload_conf()")
    await connection.close()
    await asyncio.sleep(0.2)  # Each backend reads the setting before its next statement, once the signal has arrived.
