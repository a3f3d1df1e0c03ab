"""OperationsService over gRPC: decode, call, encode."""

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import metadata
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from postflow.ops.v1 import operations_service_pb2 as pb
from postflow.ops.v1.operations_service_pb2_grpc import (
    OperationsServiceServicer,
    add_OperationsServiceServicer_to_server,
)
from servicekit.faults import InvalidField
from servicekit.ops.operations import ConsumerState, Operations, Redriven, Stats
from servicekit.pg.dead_letters import DeadLetter, DeadLetterState
from servicekit.rpc.paging import Page, next_page_token, read_page
from servicekit.timestamps import timestamp

Context = grpc.aio.ServicerContext[Any, Any]

_PAYLOAD = 64 * 1024
# Bytes of payloads on a page: an answer holds 256 KiB, and the last payload may exceed this by its own size.
_PAGE = 128 * 1024
_STATES = {pb.DeadLetterState.Value(f"DEAD_LETTER_STATE_{state}"): state for state in DeadLetterState}


def operations_servicer(operations: Operations) -> tuple[Callable[[Any, Any], None], "OperationsServicer"]:
    """Returns the pair that an `RpcServer` takes."""
    return add_OperationsServiceServicer_to_server, OperationsServicer(operations)


class OperationsServicer(OperationsServiceServicer):
    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def GetStats(self, request: pb.GetStatsRequest, context: Context) -> pb.GetStatsResponse:
        return _stats(await self._operations.stats(request.organization_id))

    async def ListDeadLetters(self, request: pb.ListDeadLettersRequest, context: Context) -> pb.ListDeadLettersResponse:
        page = read_page(request)
        found = await self._operations.list(
            limit=page.size + 1,
            after=_position(page),
            organization_id=request.organization_id,
            consumer=request.consumer,
            states=_states_from(request.states),
            payload_bytes=_PAYLOAD if request.include_payload else 0,
        )
        shown = _fitting(found[: page.size])
        more = len(found) > len(shown)
        return pb.ListDeadLettersResponse(
            dead_letters=[_dead_letter(each) for each in shown],
            next_page_token=next_page_token(request, _cursor(shown[-1])) if more else "",
        )

    async def RedriveDeadLetters(
        self, request: pb.RedriveDeadLettersRequest, context: Context
    ) -> pb.RedriveDeadLettersResponse:
        if bool(request.dead_letter_ids) is bool(request.consumer):
            raise InvalidField("consumer", "give either ids of dead letters or a consumer")
        if request.dead_letter_ids:
            results = await self._operations.redrive(request.dead_letter_ids, request.organization_id)
            return pb.RedriveDeadLettersResponse(results=map(_result, results))
        return await self._redrive_page(request)

    async def ArchiveDeadLetters(
        self, request: pb.ArchiveDeadLettersRequest, context: Context
    ) -> pb.ArchiveDeadLettersResponse:
        archived = await self._operations.archive(request.dead_letter_ids, request.organization_id)
        return pb.ArchiveDeadLettersResponse(dead_letter_ids=archived)

    async def _redrive_page(self, request: pb.RedriveDeadLettersRequest) -> pb.RedriveDeadLettersResponse:
        self._operations.check_consumer(request.consumer)
        page = read_page(request)
        found = await self._operations.list(
            limit=page.size + 1,
            after=_position(page),
            organization_id=request.organization_id,
            consumer=request.consumer,
            states=[DeadLetterState.OPEN],
            payload_bytes=0,
        )
        letters = found[: page.size]
        results = await self._operations.redrive([each.id for each in letters], request.organization_id)
        return pb.RedriveDeadLettersResponse(
            results=map(_result, results),
            next_page_token=next_page_token(request, _cursor(letters[-1])) if len(found) > len(letters) else "",
        )


def _states_from(states: Sequence[int]) -> list[DeadLetterState]:
    return [_STATES[state] for state in states]


def _position(page: Page) -> tuple[datetime, str] | None:
    return (datetime.fromisoformat(str(page.after[0])), str(page.after[1])) if page.after else None


def _cursor(letter: DeadLetter) -> tuple[str, str]:
    return letter.create_time.isoformat(), letter.id


def _fitting(letters: Sequence[DeadLetter]) -> Sequence[DeadLetter]:
    """Returns as many letters as an answer holds, at least one."""
    size = 0
    for place, letter in enumerate(letters):
        if place and size + len(letter.payload) > _PAGE:
            return letters[:place]
        size += len(letter.payload)
    return letters


def _stats(stats: Stats) -> pb.GetStatsResponse:
    return pb.GetStatsResponse(
        service=stats.service,
        version=metadata.version("postflow"),
        instance=stats.instance,
        start_time=timestamp(stats.start_time),
        schema_revision=stats.schema_revision,
        needed_schema_revision=stats.needed_schema_revision,
        consumers=map(_consumer, stats.consumers),
        outbox=pb.OutboxStats(backlog=stats.outbox_backlog, oldest_age=_duration(stats)),
        numbers=[pb.Number(name=each.name, value=each.value, unit=each.unit) for each in stats.numbers],
    )


def _consumer(state: ConsumerState) -> pb.ConsumerStats:
    return pb.ConsumerStats(
        consumer=state.consumer,
        state=pb.CONSUMER_STATE_FAILING if state.is_failing else pb.CONSUMER_STATE_RUNNING,
        failing_types=state.failing_types,
        open_dead_letters=state.open_letters,
    )


def _dead_letter(letter: DeadLetter) -> pb.DeadLetter:
    return pb.DeadLetter(
        id=letter.id,
        organization_id=letter.organization_id,
        consumer=letter.consumer,
        subject=letter.subject,
        reason=letter.reason,
        state=f"DEAD_LETTER_STATE_{letter.state}",
        create_time=timestamp(letter.create_time),
        redrives=letter.redrives,
        redrive_time=timestamp(letter.redrive_time),
        end_time=timestamp(letter.end_time),
        payload_size=letter.size,
        payload=letter.payload,
    )


def _result(redriven: Redriven) -> pb.RedriveResult:
    return pb.RedriveResult(dead_letter_id=redriven.letter.id, redriven=not redriven.failure, reason=redriven.failure)


def _duration(stats: Stats) -> Duration | None:
    if stats.outbox_age is None:
        return None
    message = Duration()
    message.FromTimedelta(stats.outbox_age)
    return message
