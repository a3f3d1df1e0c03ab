"""A webhook that no longer answers is paused, and gets only what it asks for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.domain.delivery import Accepted, NotAccepted
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.subscription import (
    PauseReason,
    Subscription,
    SubscriptionChange,
    SubscriptionState,
    attempted,
    changed,
    created,
    require_subscription,
    wants,
)
from servicekit.faults import Conflict, NotFound
from testkit.clocks import START

HOOK = Subscription(organization_id="acme", id="w1", url="https://example.com", create_time=START, update_time=START)
NO = NotAccepted(reason="HTTP_500")
POST = Notification(
    organization_id="acme",
    kind=NotificationKind.POST_FAILED,
    subject_id="j1",
    occasion="1",
    time=START,
    brand_id="shop",
)
ACCOUNT = replace(POST, kind=NotificationKind.ACCOUNT_DISCONNECTED, brand_id="")


@pytest.mark.parametrize(
    ("fields", "post", "account"),
    [
        ({}, True, True),
        ({"kinds": (NotificationKind.POST_FAILED,)}, True, False),
        ({"brand_ids": ("shop",)}, True, True),
        ({"brand_ids": ("other",)}, False, False),
    ],
    ids=str,
)
def test_a_webhook_gets_what_it_asks_for(fields: dict[str, tuple[str, ...]], post: bool, account: bool) -> None:
    hook = replace(HOOK, **fields)  # type: ignore[arg-type]
    assert wants(hook, POST, ()) is post
    assert wants(hook, ACCOUNT, ["shop"]) is account
    assert wants(hook, ACCOUNT, []) is (not hook.brand_ids and account)


def test_five_given_up_in_a_row_pause_it() -> None:
    hook = HOOK
    for _ in range(4):
        hook = attempted(hook, NO, is_given_up=True, now=START)
    assert not hook.is_paused
    well = attempted(hook, Accepted(), is_given_up=False, now=START)
    assert (well.exhausted, well.failures, well.last_success_time) == (0, 0, START)
    hook = attempted(hook, NO, is_given_up=True, now=START)
    assert (hook.state, hook.state_reason) == (SubscriptionState.PAUSED, PauseReason.FAILURES)


@pytest.mark.parametrize(("days", "paused"), [(2.99, False), (3, True)])
def test_three_days_of_failures_pause_it(days: float, paused: bool) -> None:
    first = attempted(HOOK, NO, is_given_up=False, now=START)
    assert first.failing_since == START
    assert attempted(first, NO, is_given_up=False, now=START + timedelta(days=days)).is_paused is paused


def test_one_that_is_gone_is_paused_at_once() -> None:
    hook = attempted(HOOK, replace(NO, is_gone=True), is_given_up=True, now=START)
    assert (hook.state, hook.state_reason) == (SubscriptionState.PAUSED, PauseReason.GONE)


def test_the_reason_of_a_pause_stays() -> None:
    paused = changed(
        HOOK, SubscriptionChange(organization_id="acme", id="w1", state=SubscriptionState.PAUSED), now=START
    )
    assert paused.state_reason is PauseReason.BY_REQUEST
    after = attempted(paused, replace(NO, is_gone=True), is_given_up=True, now=START)
    assert after.state_reason is PauseReason.BY_REQUEST


def test_what_people_set_has_a_version() -> None:
    hook = created(SubscriptionChange(organization_id="acme", id="", url="https://example.com"), "w1", now=START)
    assert (hook.id, hook.etag, hook.state) == ("w1", "1", SubscriptionState.ACTIVE)
    assert changed(hook, SubscriptionChange(organization_id="acme", id="w1", url=hook.url), now=START) is hook
    after = changed(hook, SubscriptionChange(organization_id="acme", id="w1", description="d"), now=START)
    assert after.etag == "2"
    with pytest.raises(Conflict):
        require_subscription(after, "w1", etag="1")
    with pytest.raises(NotFound):
        require_subscription(None, "w1")
