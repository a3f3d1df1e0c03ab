"""The announcements of Publisher itself, as it reads them again after a restore."""

from datetime import datetime

from postflow.publisher.v1 import publisher_events_pb2
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.wire.posts import states_from
from publisher_service.wire.targets import target_from
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import moment, put
from topology import events_subject

# No tenant has this id, which contains what no id may.
EVERY_ORGANIZATION = "*"


def announced_job(message: publisher_events_pb2.PostJobChanged) -> PostJob:
    seen = message.post_job
    (state,) = states_from([seen.state]) or (JobState.UNKNOWN,)

    def time(name: str) -> datetime | None:
        return moment(getattr(seen, name)) if seen.HasField(name) else None

    return PostJob(
        organization_id=message.organization_id,
        id=seen.id,
        draft_id=seen.draft_id,
        target=target_from(seen.target),
        state=state,
        state_reason=seen.state_reason,
        version=seen.version,
        run=seen.run,
        slot_id=seen.slot_id,
        slot_revision=seen.slot_revision,
        schedule_time=time("schedule_time"),
        not_after=time("not_after"),
        next_action_time=time("next_action_time"),
        attempts=seen.attempts,
        in_doubt=seen.in_doubt,
        content_revision=seen.content_revision,
        publish_time=time("publish_time"),
        external_id=seen.external_id,
        external_url=seen.external_url,
        evidence_kind=seen.evidence_kind,
        error_reason=seen.error_reason,
        error_message=seen.error_message,
        last_attempt_time=time("last_attempt_time"),
        target_month=seen.target_month,
        part=seen.part,
        parts=seen.parts,
        follows=seen.follows,
        create_time=moment(seen.create_time),
        update_time=moment(seen.update_time),
    )


def publisher_restored(restored_time: datetime | None) -> Announcement:
    message = publisher_events_pb2.PublisherRestored()
    put(message.restored_time, restored_time)
    return Announcement(
        subject=events_subject("publisher", "restored"),
        organization_id=EVERY_ORGANIZATION,
        aggregate_id="publisher",
        message=message,
    )
