"""A delivery is tried ten times over three days, and ends in time."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.delivery import (
    MOST_ATTEMPTS,
    WAITS,
    Accepted,
    Delivery,
    DeliveryState,
    NotAccepted,
    delivery_id,
    digest_id,
    is_stale,
    pause_of,
    settled,
    skipped,
    tried_again,
)
from publisher_service.domain.notification import NotificationKind
from servicekit.faults import Refused
from testkit.clocks import START

NEW = Delivery(
    organization_id="acme",
    id="d1",
    notification_id="n1",
    kind=NotificationKind.POST_FAILED,
    receiver="w1",
    due_time=START,
    create_time=START,
    update_time=START,
)
LATER = NotAccepted(reason="HTTP_500")


def test_the_schedule_is_that_of_standard_webhooks() -> None:
    times, delivery = [timedelta(0)], NEW
    while delivery.state is DeliveryState.WAITING:
        delivery = settled(delivery, LATER, now=delivery.due_time, draw=0)
        times.append(delivery.due_time - START)
    assert delivery.attempts == MOST_ATTEMPTS == 10
    assert delivery.state is DeliveryState.FAILED
    assert times[1:-1] == [sum(WAITS[: place + 1], timedelta(0)) for place in range(9)]
    assert times[-2] == timedelta(hours=75, minutes=35, seconds=5)


@given(st.floats(0, 1), st.integers(0, 10**6))
def test_a_wait_is_at_least_what_the_receiver_asks_for(draw: float, seconds: int) -> None:
    asked = replace(LATER, retry_after=timedelta(seconds=seconds))
    wait = settled(NEW, asked, now=START, draw=draw).due_time - START
    assert WAITS[0] <= wait <= timedelta(hours=24)
    assert wait >= min(timedelta(seconds=seconds), timedelta(hours=24))


@pytest.mark.parametrize("result", [NotAccepted(reason="R", is_final=True), NotAccepted(reason="R", is_gone=True)])
def test_a_refusal_for_good_ends_a_delivery(result: NotAccepted) -> None:
    after = settled(NEW, result, now=START, draw=0)
    assert (after.state, after.end_time, after.error_reason) == (DeliveryState.FAILED, START, "R")


def test_success_leaves_no_error() -> None:
    after = settled(settled(NEW, LATER, now=START, draw=0), Accepted(), now=START, draw=0)
    assert (after.state, after.attempts, after.error_reason) == (DeliveryState.DELIVERED, 2, "")


def test_an_error_is_stored_on_one_line() -> None:
    after = settled(NEW, NotAccepted(reason="R", message="a\r\nb" + "c" * 999), now=START, draw=0)
    assert after.error_message.startswith("a bccc")
    assert len(after.error_message) == 300


def test_only_what_was_never_tried_becomes_stale() -> None:
    waiting = replace(NEW, expire_time=START)
    assert not is_stale(waiting, now=START)
    assert is_stale(waiting, now=START + timedelta(seconds=1))
    assert not is_stale(replace(waiting, attempts=1), now=START + timedelta(days=9))
    assert skipped(waiting, "TOO_OLD", now=START).state is DeliveryState.SKIPPED


@pytest.mark.parametrize(
    ("result", "failures", "seconds"),
    [
        (LATER, 1, 5),
        (LATER, 2, 10),
        (LATER, 7, 300),
        (LATER, 10_000, 300),
        (replace(LATER, is_throttled=True), 1, 60),
        (replace(LATER, is_throttled=True, retry_after=timedelta(minutes=9)), 1, 540),
        (replace(LATER, retry_after=timedelta(days=9)), 1, 86_400),
    ],
)
def test_a_receiver_is_left_alone_for_longer_each_time(result: NotAccepted, failures: int, seconds: int) -> None:
    assert pause_of(result, failures) == timedelta(seconds=seconds)


def test_success_and_refused_recipients_pause_no_receiver() -> None:
    assert pause_of(Accepted(), 0) is None
    assert pause_of(NotAccepted(reason="SMTP_550", is_final=True), 3) is None


def test_what_is_tried_again_has_all_its_attempts() -> None:
    given_up = replace(settled(NEW, replace(LATER, is_final=True), now=START, draw=0), attempts=10, expire_time=START)
    again = tried_again(given_up, is_deleted=False, is_paused=False, now=START)
    assert (again.state, again.attempts, again.end_time, again.expire_time) == (DeliveryState.WAITING, 0, None, None)
    with pytest.raises(Refused, match="SUBSCRIPTION_PAUSED"):
        tried_again(given_up, is_deleted=False, is_paused=True, now=START)


def test_ids_tell_deliveries_apart_and_know_repeats() -> None:
    ids = {
        delivery_id("acme", "n1", "w1"),
        delivery_id("acme", "n1", "w2"),
        delivery_id("acme", "n1", "", "ann@example.com"),
        delivery_id("acme", "n2", "", "ann@example.com"),
        delivery_id("other", "n1", "w1"),
        digest_id("acme", "ann@example.com", START),
        digest_id("acme", "ann@example.com", START + timedelta(hours=1)),
    }
    assert len(ids) == 7
    assert delivery_id("acme", "n1", "", "ANN@example.com") in ids
