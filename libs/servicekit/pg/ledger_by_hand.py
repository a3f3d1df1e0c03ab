"""The request ledger: the answer to a mutating call, kept under its `request_id` in the call's own transaction."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.faults import InvalidField
from servicekit.pg.database import Transaction

_CLAIM = text("""
    insert into request_ledger (organization_id, method, request_id, request_digest, create_time)
    values (:organization_id, :method, :request_id, :request_digest, :now)
    on conflict do nothing
""")
_ROW = """
    select request_digest, intention, response from request_ledger
    where organization_id = :organization_id and method = :method and request_id = :request_id
"""
_FIND = text(f"{_ROW} for update")
_LOOK = text(_ROW)
_INTEND = text("""
    update request_ledger set intention = :intention
    where organization_id = :organization_id and method = :method and request_id = :request_id
""")
_ANSWER = text("""
    update request_ledger set response = :response
    where organization_id = :organization_id and method = :method and request_id = :request_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """Names one call. Without a `request_id` the call is not remembered."""

    organization_id: str
    method: str
    request_id: str
    request_digest: bytes


class Request(Protocol):
    """A request of a proto that changes something."""

    @property
    def organization_id(self) -> str: ...

    @property
    def request_id(self) -> str: ...

    def SerializeToString(self, *, deterministic: bool) -> bytes: ...


def request_key(method: str, request: Request) -> RequestKey:
    return RequestKey(
        organization_id=request.organization_id,
        method=method,
        request_id=request.request_id,
        request_digest=sha256(request.SerializeToString(deterministic=True)).digest(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The answer, or the intention still to be carried out, of an earlier call with this key."""

    intention: bytes | None
    response: bytes | None


class RequestLedger:
    async def look(self, connection: AsyncConnection, key: RequestKey) -> bytes | None:
        """The answer that is kept, if any: for a call that asks elsewhere before it opens the transaction."""
        row = (await connection.execute(_LOOK, _names(key))).one_or_none() if key.request_id else None
        return _remembered(row, key).response if row else None

    async def recall(self, tx: Transaction, key: RequestKey, *, now: datetime) -> Remembered | None:
        """None: this call is the first, and its row is now taken. A concurrent call with the same key waits here."""
        if not key.request_id:
            return None
        while True:
            taken = await tx.connection.execute(
                _CLAIM, _names(key) | {"request_digest": key.request_digest, "now": now}
            )
            if taken.rowcount == 1:
                return None
            if row := (await tx.connection.execute(_FIND, _names(key))).one_or_none():
                break  # else the clean-up was faster, and the row can be taken after all
        return _remembered(row, key)

    async def intend(self, tx: Transaction, key: RequestKey, intention: bytes) -> None:
        if key.request_id:
            await tx.connection.execute(_INTEND, _names(key) | {"intention": intention})

    async def answer(self, tx: Transaction, key: RequestKey, response: bytes) -> None:
        if key.request_id:
            await tx.connection.execute(_ANSWER, _names(key) | {"response": response})


def _remembered(row: Row[Any], key: RequestKey) -> Remembered:
    if row.request_digest != key.request_digest:
        raise InvalidField("request_id", "was used for another request", reason="REQUEST_ID_REUSED")
    return Remembered(intention=row.intention, response=row.response)


def _names(key: RequestKey) -> dict[str, object]:
    return {"organization_id": key.organization_id, "method": key.method, "request_id": key.request_id}
