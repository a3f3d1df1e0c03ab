"""Watches of post jobs: the events that concern them, their tokens and their messages."""

from collections.abc import Collection, Iterator

from google.protobuf.message import DecodeError

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.watching import Mark, News
from publisher_service.wire.posts import post_job
from servicekit.bus.feed import Hint
from servicekit.faults import OutOfRange
from servicekit.rpc.paging import Cursor
from servicekit.timestamps import from_micros, micros

SUBJECTS = ("events.publisher.>",)
"""Like the filters of consumers, they match the subjects of earlier releases, too."""

_FORM = 1
"""The form of a token; a process of another release may not know it."""

_CHANGED = publisher_events_pb2.PostJobChanged.DESCRIPTOR.full_name
_ACCEPTED = publisher_events_pb2.CommandsAccepted.DESCRIPTOR.full_name


def hints(payload: bytes, organizations: Collection[str]) -> Iterator[Hint]:
    """Reads which post jobs an envelope concerns. What cannot be decoded concerns none."""
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
    organization_id = event.organization_id
    if event.type == _CHANGED:
        job = publisher_events_pb2.PostJobChanged.FromString(event.payload).post_job
        yield from _of_job(organization_id, job.id, job.draft_id, job.target.social_account_id)
    elif event.type == _ACCEPTED:
        for each in publisher_events_pb2.CommandsAccepted.FromString(event.payload).commands:
            yield from _of_job(organization_id, each.post_job_id, each.draft_id, each.target.social_account_id)


def _of_job(organization_id: str, job_id: str, draft_id: str, social_account_id: str) -> Iterator[Hint]:
    """Yields a hint for each key under which the job may be watched; see `Watched.key`."""
    yield Hint((organization_id, "draft", draft_id), job_id, 0)
    yield Hint((organization_id, "account", social_account_id), job_id, 0)
    yield Hint((organization_id, "", ""), job_id, 0)


def mark(cursor: Cursor | None) -> Mark | None:
    """Reads how far a watcher had come, as `cursor` wrote it into the token."""
    if cursor is None:
        return None
    if cursor[0] != _FORM:
        raise OutOfRange("RESUME_TOKEN_EXPIRED", "the token is of another release; begin without a token")
    _, create_time, sequence, is_caught_up, *after = cursor
    return Mark(
        create_time=from_micros(int(create_time)),
        sequence=int(sequence),
        is_caught_up=bool(is_caught_up),
        after=(from_micros(int(after[0])), str(after[1])) if after else None,
    )


def cursor(mark: Mark) -> Cursor:
    after = (micros(mark.after[0]), mark.after[1]) if mark.after else ()
    return (_FORM, micros(mark.create_time), mark.sequence, int(mark.is_caught_up), *after)


def watch_post_jobs_response(news: News, resume_token: str) -> pb.WatchPostJobsResponse:
    return pb.WatchPostJobsResponse(
        post_job=post_job(news.job) if news.job else None, is_caught_up=news.is_caught_up, resume_token=resume_token
    )
