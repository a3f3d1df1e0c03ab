"""Classifies database errors: unreachable for now, to be run again, caused by data, or a misconfiguration."""

import socket

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from servicekit.run import addresses, transient
from servicekit.run.addresses import Misconfigured

_RERUN = frozenset({"40P01", "40001"})  # deadlock detected, serialization failure
# Connection lost; shut down or starting up; out of connections, memory or disk; a lock timeout; a statement timeout or
# cancellation; an idle transaction; a primary that was demoted.
_UNREACHABLE = ("08", "57P", "53", "55P03", "57014", "25P03", "25006")

_READ_ONLY = "25006"
_LATE = _RERUN | {"57014", "55P03"}  # a statement timeout, a lock timeout

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
    """Returns whether the error is a lost deadlock, or a statement prepared before a migration changed its table."""
    return sqlstate(error) in _RERUN or isinstance(_cause(error), asyncpg.InvalidCachedStatementError)


def is_transient(error: BaseException) -> bool:
    """Returns whether the database is unreachable or overloaded.

    asyncpg reports a lost connection by several classes, so SQLAlchemy's flag decides.
    """
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if sqlstate(error).startswith(_UNREACHABLE) or is_rerunnable(error):
        return True
    # While a connection is being set up, SQLAlchemy does not wrap the driver's error: the server has hung up.
    if isinstance(error, asyncpg.InterfaceError) and "closed" in str(error):
        return True
    # Before there is a connection, the errors are the operating system's.
    return isinstance(error, PoolTimeout | ConnectionError | TimeoutError | socket.gaierror) or type(error) is OSError


def is_refused_write(error: BaseException) -> bool:
    """Returns whether a statement would have written in a read-only transaction."""
    return sqlstate(error) == _READ_ONLY


def is_late(error: BaseException) -> bool:
    """Returns whether the database is there, but a statement or lock took too long, or every rerun lost."""
    return sqlstate(error) in _LATE


def is_data_error(error: BaseException) -> bool:
    """Returns whether the database cannot store or read the values: a NUL in a text, a number out of range, a long key.

    asyncpg reports a value of the wrong type under the same SQLSTATE; that is a mistake in our code, not in the data.
    """
    if sqlstate(error) == _PROGRAM_LIMIT_EXCEEDED:
        return True
    if not sqlstate(error).startswith(_DATA_EXCEPTION):
        return False
    cause = _cause(error)
    return not (cause and isinstance(cause.__cause__, TypeError))


def misconfiguration(error: BaseException) -> Misconfigured | None:
    """Returns what only a person can correct: a wrong password, a database that is missing or another service's."""
    complaint = _COMPLAINTS.get(sqlstate(error))
    return Misconfigured("database_url", complaint) if complaint else None


def _cause(error: BaseException) -> BaseException | None:
    return error.orig.__cause__ if isinstance(error, DBAPIError) and error.orig else error


transient.recognise(is_transient)
addresses.recognise(misconfiguration)
