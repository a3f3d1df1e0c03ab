"""Which database errors mean "away for now", and which mean "run the same transaction again"."""

import socket

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from servicekit.run import addresses, transient
from servicekit.run.addresses import Misconfigured

_RERUN = frozenset({"40P01", "40001"})  # deadlock detected, serialization failure
# Connection lost; shut down or starting up; out of connections, memory or disk; a lock that was not given in time;
# a statement that was not done in time, or was canceled; a transaction that sat idle; a primary that is one no more.
_AWAY = ("08", "57P", "53", "55P03", "57014", "25P03", "25006")

_LATE = _RERUN | {"57014", "55P03"}  # canceled for its time, a lock not given in time

_DATA_EXCEPTION = "22"
_PROGRAM_LIMIT_EXCEEDED = "54000"  # an index row larger than a third of a page

_COMPLAINTS = {
    "28P01": "the server refuses this user and password",
    "28000": "the server refuses this user",
    "3D000": "the server has no database of this name: create it, then run postflow-migrate",
    "42501": "this user may not use this database: is it another service's?",
}


def sqlstate(error: BaseException) -> str:
    original = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(original, "sqlstate", None) or "")


def is_rerunnable(error: BaseException) -> bool:
    """A lost deadlock, or a statement prepared before a migration changed its table."""
    return sqlstate(error) in _RERUN or isinstance(_cause(error), asyncpg.InvalidCachedStatementError)


def is_transient(error: BaseException) -> bool:
    """The database is away or overloaded. asyncpg reports a lost connection by several classes, so the flag decides."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if sqlstate(error).startswith(_AWAY) or is_rerunnable(error):
        return True
    # Before there is a connection, the operating system's own errors come through.
    return isinstance(error, PoolTimeout | ConnectionError | TimeoutError | socket.gaierror) or type(error) is OSError


def is_late(error: BaseException) -> bool:
    """Transient, and yet the database is there: a statement or a lock took too long, or each rerun lost."""
    return sqlstate(error) in _LATE


def is_data_error(error: BaseException) -> bool:
    """The database cannot store or read these values: a NUL in a text, a number out of range, a key too long to index.

    asyncpg reports a value of the wrong type under the same SQLSTATE; that is a mistake in our code, not in the data.
    """
    if sqlstate(error) == _PROGRAM_LIMIT_EXCEEDED:
        return True
    if not sqlstate(error).startswith(_DATA_EXCEPTION):
        return False
    cause = _cause(error)
    return not (cause and isinstance(cause.__cause__, TypeError))


def misconfiguration(error: BaseException) -> Misconfigured | None:
    """What only a person can mend: a wrong password, a database that is not there or not ours."""
    complaint = _COMPLAINTS.get(sqlstate(error))
    return Misconfigured("database_url", complaint) if complaint else None


def _cause(error: BaseException) -> BaseException | None:
    return error.orig.__cause__ if isinstance(error, DBAPIError) and error.orig else error


transient.recognise(is_transient)
addresses.recognise(misconfiguration)
