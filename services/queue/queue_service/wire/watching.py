"""Watches of queues: the events that concern them, their tokens and their messages."""

from collections.abc import Collection, Iterator

from google.protobuf.message import DecodeError

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from postflow.queue.v1 import queue_events_pb2, queue_service_pb2
from queue_service.domain.watching import Change, Mark, News
from queue_service.wire import slots as wire
from queue_service.wire.queues import queue
from servicekit.bus.feed import Hint
from servicekit.faults import OutOfRange
from servicekit.rpc.paging import Cursor
from servicekit.timestamps import from_micros, micros

SUBJECTS = ("events.queue.>", "events.publisher.>")
"""Like the filters of consumers, they match the subjects of earlier releases, too."""

_FORM = 1
"""The form of a token; a process of another release may not know it."""

_OF_SLOTS = {
    each.DESCRIPTOR.full_name: each
    for each in (queue_events_pb2.SlotScheduled, queue_events_pb2.SlotMoved, queue_events_pb2.SlotCanceled)
}
_JOB_CHANGED = publisher_events_pb2.PostJobChanged.DESCRIPTOR.full_name
_ACCEPTED = publisher_events_pb2.CommandsAccepted.DESCRIPTOR.full_name


def hints(payload: bytes, organizations: Collection[str]) -> Iterator[Hint]:
    """Reads which slots an envelope concerns. What cannot be decoded concerns none: the consumer reports it."""
    try:
        events = bus_pb2.Envelope.FromString(payload).events
    except DecodeError:
        return
    for event in events:
        if event.organization_id in organizations:
            try:
                yield from _of_event(event)
            except DecodeError:
                continue


def _of_event(event: bus_pb2.Event) -> Iterator[Hint]:
    if of_slot := _OF_SLOTS.get(event.type):
        slot = of_slot.FromString(event.payload)
        yield Hint((event.organization_id, slot.social_account_id), Change(slot.slot_id), 0)
    elif event.type == _JOB_CHANGED:
        job = publisher_events_pb2.PostJobChanged.FromString(event.payload).post_job
        if job.part:  # follow-ups have no slot
            return
        to = job.target
        change = Change(job.slot_id, job.draft_id, to.channel, to.destination)
        yield Hint((event.organization_id, to.social_account_id), change, job.version)
    elif event.type == _ACCEPTED:
        for each in publisher_events_pb2.CommandsAccepted.FromString(event.payload).commands:
            change = Change(each.slot_id, each.draft_id, each.target.channel, each.target.destination)
            yield Hint((event.organization_id, each.target.social_account_id), change, each.version)


def mark(cursor: Cursor | None) -> Mark | None:
    """Reads how far a watcher had come, as `cursor` wrote it into the token."""
    if cursor is None:
        return None
    if cursor[0] != _FORM:
        raise OutOfRange("RESUME_TOKEN_EXPIRED", "the token is of another release; begin without a token")
    _, create_time, sequence, settings, limits, low, *after = cursor
    return Mark(
        create_time=from_micros(int(create_time)),
        sequence=int(sequence),
        settings=str(settings),
        limits=str(limits),
        low=None if low == "" else from_micros(int(low)),
        after=wire.position(tuple(after)) if after else None,
    )


def cursor(mark: Mark) -> Cursor:
    low: int | str = "" if mark.low is None else micros(mark.low)
    after = wire.cursor(mark.after) if mark.after else ()
    return (_FORM, micros(mark.create_time), mark.sequence, mark.settings, mark.limits, low, *after)


def watch_queue_response(news: News, resume_token: str) -> queue_service_pb2.WatchQueueResponse:
    return queue_service_pb2.WatchQueueResponse(
        queue_slot=wire.queue_slot(news.slot) if news.slot else None,
        queue=queue(news.view) if news.view else None,
        is_caught_up=news.is_caught_up,
        resume_token=resume_token,
    )
