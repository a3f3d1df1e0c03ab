"""Protobuf <-> domain, both ways. The only place where both vocabularies meet."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from civil.days import local_day
from civil.zones import UnknownZone, find_zone
from postflow.drafts.v1 import draft_pb2, drafts_events_pb2
from postflow.publisher.v1 import (
    post_job_pb2,
    publisher_events_pb2,
    publisher_service_pb2,
    social_account_pb2,
)
from postflow.publisher.v1.publisher_service_pb2 import ResolvePostJobResponse
from postflow.publisher.v1.social_account_service_pb2 import ConnectAccountResponse
from postflow.queue.v1 import publish_command_pb2, queue_events_pb2
from postflow.target.v1 import target_pb2
from publisher_service.domain.account import AccountState, SocialAccount
from publisher_service.domain.attempt import Attempt
from publisher_service.domain.claim import Command
from publisher_service.domain.content import Content
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.post_job import EventKind, JobState, PostJob, Target, kind_of
from publisher_service.domain.resolution import Resolution, Said
from publisher_service.domain.withdrawal import Withdrawal
from servicekit.faults import InvalidField, InvalidRequest
from servicekit.pg.outbox import Announcement
from topology import events_subject

__all__ = [
    "ConnectAccountResponse",
    "ResolvePostJobResponse",
    "UnreadableMessage",
    "account_connected",
    "account_disconnected",
    "account_states_from",
    "command_from",
    "commands_accepted",
    "content_from",
    "get_post_job_response",
    "local_month",
    "moment",
    "post_job",
    "post_job_changed",
    "resolution_from",
    "saved_draft_from",
    "slot_from",
    "social_account",
    "states_from",
    "target_from",
    "withdraw_response",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The generated stubs say that Value returns an int, and that a field takes the enum.
_STATES: dict[str, post_job_pb2.PostJobState] = {
    state: cast(post_job_pb2.PostJobState, post_job_pb2.PostJobState.Value(f"POST_JOB_STATE_{state}"))
    for state in JobState
}
_STATES_BACK: dict[int, JobState] = {_STATES[state]: state for state in JobState}
_KINDS = {
    kind: cast(
        publisher_events_pb2.PostJobEventKind,
        publisher_events_pb2.PostJobEventKind.Value(f"POST_JOB_EVENT_KIND_{kind}"),
    )
    for kind in EventKind
}
_ACCOUNT_STATES: dict[str, social_account_pb2.SocialAccountState] = {
    AccountState.CONNECTED: social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED,
    AccountState.DISCONNECTED: social_account_pb2.SOCIAL_ACCOUNT_STATE_DISCONNECTED,
}


class UnreadableMessage(InvalidRequest):
    """The message decodes, but does not say what it must."""

    def __init__(self, message: str) -> None:
        super().__init__("MALFORMED_EVENT", message)


def command_from(message: publish_command_pb2.PublishCommand) -> Command:
    target = message.target
    named = (message.organization_id, message.slot_id, message.draft_id, target.social_account_id, target.channel)
    if not all(named) or not message.HasField("schedule_time") or not message.HasField("not_after"):
        raise UnreadableMessage("a publish command lacks its organization, slot, draft, target or times")
    if any("\0" in text for text in (*named, target.destination, message.traceparent)):
        raise UnreadableMessage("a publish command names what no database can hold")
    return Command(
        organization_id=message.organization_id,
        draft_id=message.draft_id,
        target=target_from(target),
        slot_sequence=message.slot_sequence,
        slot_id=message.slot_id,
        slot_revision=message.slot_revision,
        emission=message.emission,
        schedule_time=moment(message.schedule_time),
        not_after=moment(message.not_after),
        content_revision=message.content_revision,
        max_attempts=max(message.max_attempts, 1),
        traceparent=message.traceparent,
        time_zone=message.time_zone,
    )


def saved_draft_from(message: drafts_events_pb2.DraftSaved) -> SavedDraft:
    if hashlib.sha256(message.content).hexdigest() != message.content_digest:
        raise UnreadableMessage("the content of a DraftSaved does not match its digest")
    content_from(message.content)
    return SavedDraft(
        organization_id=message.organization_id,
        draft_id=message.draft_id,
        version=message.version,
        revision=message.revision,
        content=message.content,
        content_digest=message.content_digest,
        approved=message.approved,
        targets=tuple(target_from(target) for target in message.targets),
    )


def slot_from(message: queue_events_pb2.SlotScheduled | queue_events_pb2.SlotMoved, *, traceparent: str) -> Slot:
    """Either event tells the whole of what matters here; the revision says which is the newer."""
    time = moment(message.schedule_time)
    return Slot(
        organization_id=message.organization_id,
        slot_id=message.slot_id,
        sequence=message.slot_sequence,
        revision=message.revision,
        draft_id=message.draft_id,
        targets=tuple(target_from(target) for target in message.targets),
        schedule_time=time,
        not_after=moment(message.not_after) if message.HasField("not_after") else None,
        target_month=local_month(time, message.time_zone),
        traceparent=traceparent,
        content_revision=message.content_revision if isinstance(message, queue_events_pb2.SlotScheduled) else 0,
    )


def content_from(encoded: bytes) -> Content:
    """Raises UnreadableMessage."""
    try:
        message = draft_pb2.DraftContent.FromString(encoded)
    except DecodeError:
        raise UnreadableMessage("the content of a draft cannot be read") from None
    return Content(
        text=message.text,
        hashtags=tuple(message.hashtags),
        channel_texts={each.channel: each.text for each in message.channel_texts},
    )


def target_from(message: target_pb2.Target) -> Target:
    return Target(social_account_id=message.social_account_id, channel=message.channel, destination=message.destination)


def states_from(numbers: Sequence[int]) -> tuple[JobState, ...]:
    return tuple(_STATES_BACK[number] for number in numbers if number in _STATES_BACK)


def post_job_changed(job: PostJob, kind: EventKind | None = None) -> Announcement:
    message = publisher_events_pb2.PostJobChanged(
        organization_id=job.organization_id, kind=_KINDS[kind or kind_of(job.state)]
    )
    _fill_job(message.post_job, job)
    return Announcement(
        subject=events_subject("publisher", job.organization_id, "post_job"),
        organization_id=job.organization_id,
        aggregate_id=job.id,
        message=message,
        traceparent=job.traceparent,
    )


def commands_accepted(organization_id: str, accepted: Sequence[tuple[Command, int]]) -> Announcement:
    """Commands whose jobs stand in line, each with the version of its job."""
    commands = [
        publisher_events_pb2.AcceptedCommand(
            slot_id=command.slot_id,
            slot_revision=command.slot_revision,
            draft_id=command.draft_id,
            target=target_pb2.Target(
                social_account_id=command.target.social_account_id,
                channel=command.target.channel,
                destination=command.target.destination,
            ),
            post_job_id=command.post_job_id,
            version=version,
        )
        for command, version in accepted
    ]
    return Announcement(
        subject=events_subject("publisher", organization_id, "command"),
        organization_id=organization_id,
        aggregate_id=commands[0].post_job_id,
        message=publisher_events_pb2.CommandsAccepted(organization_id=organization_id, commands=commands),
    )


def account_connected(account: SocialAccount) -> Announcement:
    message = publisher_events_pb2.SocialAccountConnected(
        organization_id=account.organization_id, social_account=social_account(account)
    )
    return _about(account, message)


def account_disconnected(account: SocialAccount, error_message: str) -> Announcement:
    message = publisher_events_pb2.SocialAccountDisconnected(
        organization_id=account.organization_id, social_account=social_account(account), error_message=error_message
    )
    return _about(account, message)


def post_job(job: PostJob) -> post_job_pb2.PostJob:
    message = post_job_pb2.PostJob()
    _fill_job(message, job)
    return message


def get_post_job_response(
    job: PostJob, attempts: Sequence[Attempt], said: Sequence[tuple[int, Resolution, datetime]]
) -> publisher_service_pb2.GetPostJobResponse:
    return publisher_service_pb2.GetPostJobResponse(
        post_job=post_job(job),
        attempts=[_attempt(attempt) for attempt in attempts],
        resolutions=[_resolution(*each) for each in said],
    )


def resolution_from(request: publisher_service_pb2.ResolvePostJobRequest) -> Resolution:
    is_out = request.outcome == publisher_service_pb2.RESOLVE_OUTCOME_PUBLISHED
    if is_out and not (request.external_id or request.external_url):
        raise InvalidField("external_id", "must be given, or external_url, for a post that is out")
    if not is_out and (request.external_id or request.external_url or request.HasField("publish_time")):
        raise InvalidField("outcome", "a post that is not out has no identifier, address or time")
    return Resolution(
        outcome=Said.PUBLISHED if is_out else Said.NOT_PUBLISHED,
        external_id=request.external_id,
        external_url=request.external_url,
        publish_time=moment(request.publish_time) if request.HasField("publish_time") else None,
        resolver=request.resolver,
        note=request.note,
    )


def _resolution(run: int, said: Resolution, time: datetime) -> publisher_service_pb2.Resolution:
    outcome = (
        publisher_service_pb2.RESOLVE_OUTCOME_PUBLISHED
        if said.outcome is Said.PUBLISHED
        else publisher_service_pb2.RESOLVE_OUTCOME_NOT_PUBLISHED
    )
    message = publisher_service_pb2.Resolution(
        run=run,
        outcome=outcome,
        external_id=said.external_id,
        external_url=said.external_url,
        resolver=said.resolver,
        note=said.note,
    )
    _set(message.create_time, time)
    return message


def withdraw_response(withdrawal: Withdrawal) -> publisher_service_pb2.WithdrawContentResponse:
    if withdrawal.published:
        outcome = publisher_service_pb2.WITHDRAW_OUTCOME_PUBLISHED
    elif withdrawal.in_flight:
        outcome = publisher_service_pb2.WITHDRAW_OUTCOME_TOO_LATE
    else:
        outcome = publisher_service_pb2.WITHDRAW_OUTCOME_WITHDRAWN
    return publisher_service_pb2.WithdrawContentResponse(
        outcome=outcome,
        in_flight_post_job_ids=withdrawal.in_flight,
        published=map(_published_target, withdrawal.published),
    )


def social_account(account: SocialAccount) -> social_account_pb2.SocialAccount:
    message = social_account_pb2.SocialAccount(
        id=account.id,
        provider=account.provider,
        external_account_id=account.external_account_id,
        display_name=account.display_name,
        channels=account.channels,
        state=_ACCOUNT_STATES.get(account.state, social_account_pb2.SOCIAL_ACCOUNT_STATE_UNSPECIFIED),
        state_reason=account.state_reason,
        error_message=account.error_message,
        version=account.version,
    )
    _set(message.create_time, account.create_time)
    _set(message.update_time, account.update_time)
    if account.disconnect_time:
        _set(message.disconnect_time, account.disconnect_time)
    return message


def account_states_from(numbers: Sequence[int]) -> tuple[AccountState, ...]:
    return tuple(state for state in AccountState if _ACCOUNT_STATES[state] in numbers)


def moment(message: Timestamp) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        raise UnreadableMessage("there is no such instant") from None


def _about(
    account: SocialAccount,
    message: publisher_events_pb2.SocialAccountConnected | publisher_events_pb2.SocialAccountDisconnected,
) -> Announcement:
    return Announcement(
        subject=events_subject("publisher", account.organization_id, "social_account"),
        organization_id=account.organization_id,
        aggregate_id=account.id,
        message=message,
    )


def _fill_job(message: post_job_pb2.PostJob, job: PostJob) -> None:
    message.id = job.id
    message.draft_id = job.draft_id
    message.target.social_account_id = job.target.social_account_id
    message.target.channel = job.target.channel
    message.target.destination = job.target.destination
    message.state = _STATES.get(job.state, post_job_pb2.POST_JOB_STATE_UNSPECIFIED)
    message.state_reason = job.state_reason
    message.version = job.version
    message.run = job.run
    message.slot_id = job.slot_id
    message.slot_revision = job.slot_revision
    message.attempts = job.attempts
    message.content_revision = job.content_revision
    message.external_id = job.external_id
    message.external_url = job.external_url
    message.evidence_kind = job.evidence_kind
    message.error_reason = job.error_reason
    message.error_message = job.error_message
    message.target_month = job.target_month
    message.in_doubt = job.in_doubt
    _set(message.create_time, job.create_time)
    _set(message.update_time, job.update_time)
    if job.schedule_time:
        _set(message.schedule_time, job.schedule_time)
    if job.not_after:
        _set(message.not_after, job.not_after)
    if job.next_action_time:
        _set(message.next_action_time, job.next_action_time)
    if job.unknown_until:
        _set(message.unknown_until, job.unknown_until)
    if job.publish_time:
        _set(message.publish_time, job.publish_time)
    if job.last_attempt_time:
        _set(message.last_attempt_time, job.last_attempt_time)


def _published_target(job: PostJob) -> publisher_service_pb2.PublishedTarget:
    message = publisher_service_pb2.PublishedTarget(
        post_job_id=job.id,
        target=target_pb2.Target(
            social_account_id=job.target.social_account_id,
            channel=job.target.channel,
            destination=job.target.destination,
        ),
        content_revision=job.content_revision,
        external_id=job.external_id,
        external_url=job.external_url,
        version=job.version,
    )
    if job.schedule_time:
        _set(message.schedule_time, job.schedule_time)
    if job.publish_time:
        _set(message.publish_time, job.publish_time)
    return message


def _attempt(attempt: Attempt) -> post_job_pb2.Attempt:
    message = post_job_pb2.Attempt(
        run=attempt.run,
        number=attempt.number,
        state=attempt.state,
        idempotency_key=attempt.idempotency_key,
        content_revision=attempt.content_revision,
        external_id=attempt.external_id,
        error_reason=attempt.error_reason,
        error_message=attempt.error_message,
    )
    _set(message.start_time, attempt.start_time)
    if attempt.end_time:
        _set(message.end_time, attempt.end_time)
    return message


def _set(message: Timestamp, time: datetime) -> None:
    since = time - _EPOCH
    message.seconds = since.days * 86_400 + since.seconds
    message.nanos = since.microseconds * 1000


def local_month(time: datetime, zone: str) -> str:
    """The first day of the local month; of the UTC month when the slot names no zone that is known here."""
    try:
        day = local_day(time, find_zone(zone)) if zone else time.date()
    except UnknownZone:
        day = time.date()
    return day.replace(day=1).isoformat()
