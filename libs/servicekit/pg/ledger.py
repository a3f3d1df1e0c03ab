"""The request ledger: carries out a mutating call once, and answers a repeat of its `request_id` with the first answer.

The answer is stored in the transaction of the call, so there is one exactly if the call has taken effect.

Two processes may get the same call at once. `once` inserts the call's row before its work, so the second process waits
for the first. `once_each`, for the busiest calls, inserts the row together with the answer, after the work: one row
version instead of two. The second process then does the work, too, meets the row, rolls back and starts over with the
stored answer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Generic, Protocol, Self, TypeVar

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.faults import Fault, InvalidField
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.session import Row as HotRow
from servicekit.pg.session import Statement

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
    select request_digest, response, create_time from request_ledger
    where organization_id = :organization_id and method = :method and request_id = :request_id
"""
_FIND = text(f"{_ROW} for update")
_LOOK = text(_ROW)
_ANSWER = text("""
    update request_ledger set response = :response
    where organization_id = :organization_id and method = :method and request_id = :request_id
""")
# The clock is read with it, also if no call has an id. LATERAL with OFFSET 0 leaves only an index look-up per id,
# no matter what the planner believes of the table.
_LOOK_EACH = Statement("""
    select clock.now, found.ordinal, found.request_digest, found.response
    from (select clock_timestamp() as now) as clock
    left join (
        select wanted.ordinal, past.request_digest, past.response
        from unnest(cast(:organizations as text[]), cast(:methods as text[]), cast(:requests as text[]))
            with ordinality as wanted (organization_id, method, request_id, ordinal)
        cross join lateral (
            select request_digest, response from request_ledger as past
            where past.organization_id = wanted.organization_id and past.method = wanted.method
                and past.request_id = wanted.request_id offset 0
        ) as past
    ) as found on true
""")
# Waits for a transaction that is about to commit the same id. A row without an answer belongs to a flow of several
# transactions, which has ended early.
_STORE_EACH = Statement("""
    insert into request_ledger (organization_id, method, request_id, request_digest, response, create_time)
    select organization_id, method, request_id, request_digest, response, cast(:now as timestamptz)
    from unnest(cast(:organizations as text[]), cast(:methods as text[]), cast(:requests as text[]),
        cast(:digests as bytea[]), cast(:responses as bytea[]))
        as answered (organization_id, method, request_id, request_digest, response)
    on conflict (organization_id, method, request_id) do update set response = excluded.response
    where request_ledger.response is null and request_ledger.request_digest = excluded.request_digest
""")


_ROUNDS = 10
"""The most transactions for the same calls; each but the first follows an answer that another process has stored."""


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


Asked = TypeVar("Asked")
"""What a call asks of its use case."""
Work = Callable[[Transaction, Sequence[Asked], datetime], Awaitable[Sequence[Result | Fault]]]
"""The work of a use case for several calls in one transaction: a result for each, or the fault that refuses it.

A call that is refused must have written nothing: the transaction is committed for the others.
"""


_Calls = Mapping[int, "Call[Any, Any]"]
"""Calls by their places in what was asked."""
_Outcomes = dict[int, Any]
"""The answer, or the fault, of calls by their places."""


class _Overtaken(Exception):
    """Another process has answered one of the calls meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun(Generic[Answer]):
    """The beginning of a call: its stored answer, or since when an earlier attempt has left it without one."""

    answer: Answer | None = None
    since: datetime | None = None


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

    async def once_each(
        self, asked: Sequence[tuple[Call[Result, Any], Asked]], work: Work[Asked, Result]
    ) -> Sequence[Any | Fault]:
        """Does what `once` does for several calls in one transaction; returns the answer or the fault of each.

        No two of them may have the same id. `work` gets those without a stored answer.
        """
        for _ in range(_ROUNDS):
            try:
                return await self._database.run(lambda tx: self._once_each(tx, asked, work))
            except _Overtaken:
                continue  # the answer is stored now
        raise AssertionError("other processes answer these calls, and the answers are not found")

    async def _once_each(
        self, tx: Transaction, asked: Sequence[tuple[Call[Result, Any], Asked]], work: Work[Asked, Result]
    ) -> Sequence[Any | Fault]:
        calls = {place: call for place, (call, _) in enumerate(asked)}
        now, outcomes = await self._look_each(tx, calls)
        if fresh := {place: call for place, call in calls.items() if place not in outcomes}:
            results = await work(tx, [asked[place][1] for place in fresh], now)
            for (place, call), result in zip(fresh.items(), results, strict=True):
                outcomes[place] = result if isinstance(result, Fault) else call.answer(result)
            await self._store_each(tx, fresh, outcomes, now)
        return [outcomes[place] for place in calls]

    async def _look_each(self, tx: Transaction, calls: _Calls) -> tuple[datetime, _Outcomes]:
        """Returns the time, and the outcome of each call that was answered before."""
        named = [(place, call) for place, call in calls.items() if call.request_id]
        rows = await tx.fetch(_LOOK_EACH, _keys([call for _, call in named]))
        outcomes: _Outcomes = {}
        for row in rows:
            if row.ordinal is not None:
                place, call = named[row.ordinal - 1]
                if (past := _past(row, call)) is not None:
                    outcomes[place] = past
        return self._clock.shown(rows[0].now), outcomes

    async def _store_each(self, tx: Transaction, calls: _Calls, outcomes: _Outcomes, now: datetime) -> None:
        """Stores the answers. A refusal that is due to the same call elsewhere gives way to the answer it got there."""
        named = {place: call for place, call in calls.items() if call.request_id}
        if refused := {place: call for place, call in named.items() if isinstance(outcomes[place], Fault)}:
            outcomes |= (await self._look_each(tx, refused))[1]
        # In the order of the keys: two processes that share some of them wait for each other, and do not deadlock.
        answered = sorted(named.keys() - refused.keys(), key=lambda place: _key(named[place]))
        if not answered:
            return
        stored = await tx.execute(
            _STORE_EACH,
            _keys([named[place] for place in answered])
            | {
                "digests": [named[place].request_digest for place in answered],
                "responses": [named[place].encode(outcomes[place]) for place in answered],
                "now": now,
            },
        )
        if stored < len(answered):
            raise _Overtaken

    async def look(self, connection: AsyncConnection, call: Call[Result, Answer]) -> Answer | None:
        """Returns the stored answer, if any, for a call that asks other services before its transaction."""
        row = (await connection.execute(_LOOK, _names(call))).one_or_none() if call.request_id else None
        return _stored(row, call) if row else None

    async def recall(self, tx: Transaction, call: Call[Result, Answer], *, now: datetime) -> Answer | None:
        """Returns the stored answer; or inserts the call's row and returns None, and then `answer` must end the call.

        For flows of several transactions; all others use `once`. A concurrent call with the same id waits here.
        """
        return (await self.begin(tx, call, now=now)).answer

    async def begin(self, tx: Transaction, call: Call[Result, Answer], *, now: datetime) -> Begun[Answer]:
        """Does what `recall` does, for flows that have to know what an earlier attempt has committed."""
        if not call.request_id:
            return Begun()
        while True:
            taken = await tx.connection.execute(
                _CLAIM, _names(call) | {"request_digest": call.request_digest, "now": now}
            )
            if taken.rowcount == 1:
                return Begun()
            if row := (await tx.connection.execute(_FIND, _names(call))).one_or_none():
                return Begun(answer=_stored(row, call), since=row.create_time)
            # Housekeeping has just deleted the row, so it can be inserted.

    async def answer(self, tx: Transaction, call: Call[Result, Answer], result: Result) -> Answer:
        """Stores and returns the answer of a call whose row `recall` has inserted."""
        answer = call.answer(result)
        if call.request_id:
            await tx.connection.execute(_ANSWER, _names(call) | {"response": call.encode(answer)})
        return answer


def _stored(row: Row[Any] | HotRow, call: Call[Result, Answer]) -> Answer | None:
    """Returns the stored answer, or None if an earlier transaction of the call has not stored one yet."""
    if row.request_digest != call.request_digest:
        raise InvalidField("request_id", "was used for another request", reason="REQUEST_ID_REUSED")
    return None if row.response is None else call.decode(row.response)


def _past(row: HotRow, call: Call[Result, Answer]) -> Answer | Fault | None:
    try:
        return _stored(row, call)
    except InvalidField as reused:
        return reused


def _key(call: Call[Any, Any]) -> tuple[str, str, str]:
    return call.organization_id, call.method, call.request_id


def _keys(calls: Sequence[Call[Any, Any]]) -> dict[str, object]:
    organizations, methods, requests = zip(*map(_key, calls), strict=True) if calls else ((), (), ())
    return {"organizations": list(organizations), "methods": list(methods), "requests": list(requests)}


def _names(call: Call[Any, Any]) -> dict[str, object]:
    return {"organization_id": call.organization_id, "method": call.method, "request_id": call.request_id}
