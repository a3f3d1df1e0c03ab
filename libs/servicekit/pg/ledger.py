"""The request ledger: carries out a mutating call once, and answers a repeat of its `request_id` with the first answer.

The answer is stored in the transaction of the call, so there is one exactly if the call has taken effect.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Generic, Protocol, Self, TypeVar

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.faults import InvalidField
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

Result = TypeVar("Result")
"""The result of a use case: a value of the domain."""
Answer = TypeVar("Answer")
"""The response that the caller gets, opaque to the use case."""

_CLAIM = text("""
    insert into request_ledger (organization_id, method, request_id, request_digest, create_time)
    values (:organization_id, :method, :request_id, :request_digest, :now)
    on conflict do nothing
""")
_ROW = """
    select request_digest, response from request_ledger
    where organization_id = :organization_id and method = :method and request_id = :request_id
"""
_FIND = text(f"{_ROW} for update")
_LOOK = text(_ROW)
_ANSWER = text("""
    update request_ledger set response = :response
    where organization_id = :organization_id and method = :method and request_id = :request_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Result, Answer]):
    """One mutating call: the names under which it is stored, and how its result becomes the answer.

    A call without a `request_id` is carried out each time and not stored.
    """

    organization_id: str
    method: str
    request_id: str
    request_digest: bytes
    answer: Callable[[Result], Answer]
    encode: Callable[[Answer], bytes]
    decode: Callable[[bytes], Answer]


class Request(Protocol):
    """A mutating request."""

    @property
    def organization_id(self) -> str: ...

    @property
    def request_id(self) -> str: ...

    def SerializeToString(self, *, deterministic: bool) -> bytes: ...


class Response(Protocol):
    def SerializeToString(self) -> bytes: ...

    @classmethod
    def FromString(cls, s: bytes) -> Self: ...


Encoded = TypeVar("Encoded", bound=Response)


def mutation(request: Request, response: type[Encoded], answer: Callable[[Result], Encoded]) -> Call[Result, Encoded]:
    """Returns the call of a request; `answer` builds the response from the use case's result."""
    return Call(
        organization_id=request.organization_id,
        method=type(request).__name__.removesuffix("Request"),
        request_id=request.request_id,
        request_digest=sha256(request.SerializeToString(deterministic=True)).digest(),
        answer=answer,
        encode=lambda built: built.SerializeToString(),
        decode=response.FromString,
    )


class RequestLedger:
    """Stores the answers of one database's calls."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def once(
        self, call: Call[Result, Answer], work: Callable[[Transaction, datetime], Awaitable[Result]]
    ) -> Answer:
        """Runs `work` in a transaction and answers with its result, or with the stored answer of a repeated call."""
        return await self._database.run(lambda tx: self._once(tx, call, work))

    async def _once(
        self,
        tx: Transaction,
        call: Call[Result, Answer],
        work: Callable[[Transaction, datetime], Awaitable[Result]],
    ) -> Answer:
        now = await self._clock.now(tx.connection)
        past = await self.recall(tx, call, now=now)
        return await self.answer(tx, call, await work(tx, now)) if past is None else past

    async def look(self, connection: AsyncConnection, call: Call[Result, Answer]) -> Answer | None:
        """Returns the stored answer, if any, for a call that asks other services before its transaction."""
        row = (await connection.execute(_LOOK, _names(call))).one_or_none() if call.request_id else None
        return _stored(row, call) if row else None

    async def recall(self, tx: Transaction, call: Call[Result, Answer], *, now: datetime) -> Answer | None:
        """Returns the stored answer; or inserts the call's row and returns None, and then `answer` must end the call.

        For flows of several transactions; all others use `once`. A concurrent call with the same id waits here.
        """
        if not call.request_id:
            return None
        while True:
            taken = await tx.connection.execute(
                _CLAIM, _names(call) | {"request_digest": call.request_digest, "now": now}
            )
            if taken.rowcount == 1:
                return None
            if row := (await tx.connection.execute(_FIND, _names(call))).one_or_none():
                return _stored(row, call)
            # Housekeeping has just deleted the row, so it can be inserted.

    async def answer(self, tx: Transaction, call: Call[Result, Answer], result: Result) -> Answer:
        """Stores and returns the answer of a call whose row `recall` has inserted."""
        answer = call.answer(result)
        if call.request_id:
            await tx.connection.execute(_ANSWER, _names(call) | {"response": call.encode(answer)})
        return answer


def _stored(row: Row[Any], call: Call[Result, Answer]) -> Answer | None:
    """Returns the stored answer, or None if an earlier transaction of the call has not stored one yet."""
    if row.request_digest != call.request_digest:
        raise InvalidField("request_id", "was used for another request", reason="REQUEST_ID_REUSED")
    return None if row.response is None else call.decode(row.response)


def _names(call: Call[Any, Any]) -> dict[str, object]:
    return {"organization_id": call.organization_id, "method": call.method, "request_id": call.request_id}
