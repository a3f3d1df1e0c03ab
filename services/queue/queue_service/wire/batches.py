"""Batches of drafts that are added to queues."""

from collections.abc import Iterable, Sequence

from google.rpc.code_pb2 import Code

from postflow.queue.v1 import queue_service_pb2
from queue_service.domain.batch import Item
from queue_service.domain.slot import QueueSlot
from queue_service.wire.slots import write_slot
from servicekit.faults import Fault
from servicekit.pg.ledger import Call
from servicekit.timestamps import moment

Result = queue_service_pb2.QueueItemResult
Response = queue_service_pb2.BatchAddToQueueResponse


def items(request: queue_service_pb2.BatchAddToQueueRequest) -> tuple[Item, ...]:
    return tuple(
        Item(
            draft_id=each.draft_id,
            social_account_id=each.social_account_id,
            schedule_time=moment(each.schedule_time) if each.HasField("schedule_time") else None,
        )
        for each in request.items
    )


def item_results(outcomes: Iterable[QueueSlot | Fault]) -> Response:
    response = Response()
    for outcome in outcomes:
        _write(response.results.add(), outcome)
    return response


def in_chunks(
    call: Call[Sequence[QueueSlot | Fault], Response],
) -> Call[Sequence[QueueSlot | Fault], Sequence[Result]]:
    """Returns the call as one whose answer, a list, is stored in parts."""
    return Call(
        organization_id=call.organization_id,
        method=call.method,
        request_id=call.request_id,
        request_digest=call.request_digest,
        answer=lambda outcomes: item_results(outcomes).results,
        encode=lambda results: Response(results=results).SerializeToString(),
        decode=lambda encoded: Response.FromString(encoded).results,
    )


def _write(result: Result, outcome: QueueSlot | Fault) -> None:
    if not isinstance(outcome, Fault):
        write_slot(result.queue_slot, outcome)
        return
    result.error.code = Code.Value(outcome.code)
    result.error.reason = outcome.reason
    result.error.message = outcome.message
    result.error.metadata.update(outcome.metadata)
