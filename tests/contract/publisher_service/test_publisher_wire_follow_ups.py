"""Follow-ups on the wire: counted from the content of a draft, shown on every post job."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from postflow.drafts.v1.draft_pb2 import DraftContent, FollowUp
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from publisher_service.domain.withdrawal import Withdrawal
from publisher_service.wire.events import saved_draft_from
from publisher_service.wire.posts import post_job, post_job_changed, withdraw_response
from publisher_service.wire.restored import announced_job

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")
COMMENT = PostJob(
    organization_id="acme",
    id=job_id("acme", "draft", PAGE, 1),
    draft_id="draft",
    target=PAGE,
    state=JobState.PENDING,
    part=1,
    parts=2,
    follows="out",
    create_time=NOW,
    update_time=NOW,
)


def saved(*channels: str) -> DraftSaved:
    follow_ups = [FollowUp(channel=channel, text="More") for channel in channels]
    content = DraftContent(text="Hello", follow_ups=follow_ups).SerializeToString(deterministic=True)
    return DraftSaved(content=content, content_digest=sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("channels", "counted"),
    [((), {}), (("facebook",), {"facebook": 1}), (("facebook", "x", "facebook"), {"facebook": 2, "x": 1})],
)
def test_the_follow_ups_of_each_channel_are_counted(channels: tuple[str, ...], counted: dict[str, int]) -> None:
    assert saved_draft_from(saved(*channels)).follow_ups == counted


def test_a_job_shows_its_part_and_what_it_follows() -> None:
    shown = post_job(COMMENT)
    assert (shown.part, shown.parts, shown.follows) == (1, 2, "out")
    post = post_job(replace(COMMENT, part=0, follows=""))
    assert (post.part, post.parts, post.follows) == (0, 2, "")


def test_what_was_announced_of_a_follow_up_is_read_again() -> None:
    message = post_job_changed(COMMENT).message
    assert isinstance(message, PostJobChanged)
    assert announced_job(message) == COMMENT


def test_a_withdrawal_that_comes_too_late_names_the_parts() -> None:
    out = replace(COMMENT, state=JobState.PUBLISHED, publish_time=NOW, evidence_kind="PROVIDER_ID")
    answer = withdraw_response(Withdrawal(published=(replace(out, part=0), out)))
    assert [each.part for each in answer.published] == [0, 1]
