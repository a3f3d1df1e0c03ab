"""An answer of the provider changes a preparation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher_service.domain.preparation import (
    MOST_FAILURES,
    CredentialsInvalid,
    Delayed,
    Preparation,
    PreparationState,
    Preparing,
    Processing,
    Ready,
    Source,
    Unfit,
    Void,
    after_answer,
    at_rest,
    is_of,
    is_settled,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
AGAIN, LIFE = timedelta(seconds=5), timedelta(hours=23)
SOURCE = Source(
    channel="facebook",
    destination="",
    run=1,
    provider="sandbox-container",
    external_account_id="ext",
    credentials=b"",
    settings={},
    connected=True,
    content=b"",
    content_digest="new",
    revision=1,
    is_open=False,
    is_wanted=True,
)
PENDING = Preparation(
    organization_id="acme",
    post_job_id="job",
    social_account_id="page",
    provider="sandbox-container",
    state=PreparationState.PENDING,
    handle="",
    content_digest="",
    run=0,
    begin_time=None,
    expire_time=None,
    next_time=NOW,
    fence=1,
    failures=0,
    error_reason="",
    error_message="",
)
WORKING = replace(PENDING, state=PreparationState.PROCESSING, handle="h", content_digest="new", run=1, begin_time=NOW)


def after(preparation: Preparation, answer: Preparing, *, passed: timedelta = timedelta(0)) -> Preparation:
    return after_answer(preparation, answer, SOURCE, now=NOW + passed, again=AGAIN, life=LIFE)


def test_a_new_handle_is_asked_about_at_once() -> None:
    begun = after(PENDING, Processing(handle="h"))
    assert (begun.state, begun.next_time, begun.expire_time) == (PreparationState.PROCESSING, NOW, NOW + LIFE)
    assert is_of(begun, SOURCE)
    assert not is_settled(begun, SOURCE, NOW)


@pytest.mark.parametrize(("passed", "wait"), [(0, 5), (20, 10), (600, 60)])
def test_the_provider_is_asked_more_rarely_the_longer_it_takes(passed: int, wait: int) -> None:
    later = timedelta(seconds=passed)
    assert after(WORKING, Processing(handle="h"), passed=later).next_time == NOW + later + timedelta(seconds=wait)


def test_what_is_ready_rests_until_it_expires() -> None:
    ready = after(WORKING, Ready(handle="h"), passed=timedelta(seconds=30))
    assert (ready.state, ready.next_time, ready.expire_time) == (PreparationState.READY, None, NOW + LIFE)
    assert is_settled(ready, SOURCE, NOW)
    assert not is_settled(ready, SOURCE, NOW + LIFE)
    for other in (replace(SOURCE, content_digest="newer"), replace(SOURCE, run=2)):
        assert not is_settled(ready, other, NOW)
        assert not is_of(ready, other)


def test_failures_are_repeated_before_they_count() -> None:
    failed = WORKING
    for _ in range(MOST_FAILURES - 1):
        failed = after(failed, Void(reason="MEDIA_ERROR", message="bad"))
        assert (failed.state, failed.handle, failed.next_time) == (PreparationState.PENDING, "", NOW + AGAIN)
        failed = after(failed, Processing(handle="h2"))
    refused = after(failed, Void(reason="MEDIA_ERROR", message="bad"))
    assert (refused.state, refused.error_message, refused.next_time) == (PreparationState.REFUSED, "bad", None)
    assert is_settled(refused, SOURCE, NOW)
    assert not is_settled(refused, replace(SOURCE, content_digest="edited"), NOW)


def test_a_refusal_counts_at_once() -> None:
    refused = after(PENDING, Unfit(reason="TEXT_TOO_LONG", message="too long"))
    assert (refused.state, refused.error_reason, refused.handle) == (PreparationState.REFUSED, "TEXT_TOO_LONG", "")


def test_a_delay_changes_nothing_but_the_time() -> None:
    asked = timedelta(seconds=90)
    assert after(WORKING, Delayed(message="later", retry_after=asked)).next_time == NOW + asked
    delayed = after(WORKING, Delayed(message="down"))
    assert replace(delayed, error_message="", next_time=NOW) == WORKING
    assert after(WORKING, CredentialsInvalid(message="no")).next_time is None
    assert at_rest(WORKING).next_time is None
