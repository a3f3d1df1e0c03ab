"""Which database errors mean "away for now", and which mean "run the same transaction again"."""

import asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from servicekit.run import transient

_RERUN = frozenset({"40P01", "40001"})  # deadlock detected, serialization failure
_AWAY = ("08", "57P", "53")  # connection lost, shut down or starting up, out of connections or memory


def sqlstate(error: BaseException) -> str:
    original = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(original, "sqlstate", None) or "")


def is_rerunnable(error: BaseException) -> bool:
    return sqlstate(error) in _RERUN


def is_transient(error: BaseException) -> bool:
    """The database is away or overloaded. asyncpg reports a lost connection by several classes, so the flag decides."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if sqlstate(error).startswith(_AWAY) or is_rerunnable(error):
        return True
    return isinstance(
        error,
        OperationalError
        | InterfaceError
        | PoolTimeout
        | ConnectionError
        | TimeoutError
        | OSError
        | asyncpg.InterfaceError,
    )


transient.recognise(is_transient)
