"""Notifications fan out to each who wants them, once, and to no more mails than an hour may have."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.delivery import MAIL, DeliveryState
from publisher_service.domain.fan_out import Audience, fan_out, hour_of
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.recipients import Mode, Preferences, Recipient, RecipientList
from publisher_service.domain.subscription import Subscription, SubscriptionState
from testkit.clocks import START

DAY = timedelta(days=1)
FACT = Notification(
    organization_id="acme", kind=NotificationKind.POST_FAILED, subject_id="j1", occasion="1", time=START
)
HOOK = Subscription(organization_id="acme", id="w1", url="https://example.com", create_time=START, update_time=START)


def a_list(people: int, mode: Mode = Mode.EACH) -> RecipientList:
    return RecipientList(
        organization_id="acme",
        brand_id="",
        recipients=tuple(Recipient(email=f"p{number}@example.com") for number in range(people)),
        preferences=Preferences(published=mode),
    )


@given(st.integers(0, 5), st.integers(0, 9), st.integers(0, 40))
def test_everybody_hears_of_everything_in_as_many_mails_as_may_be(people: int, facts: int, room: int) -> None:
    audience = Audience(lists={("acme", ""): a_list(people)})
    happened = [replace(FACT, subject_id=f"j{number}") for number in range(facts)]
    found = fan_out(happened, audience, room={"acme": room}, now=START, max_age=DAY)
    heard = Counter(
        (each.email, joined)
        for each in found.deliveries
        for joined in (found.items[each.key] if each.kind is NotificationKind.DIGEST else [each.notification_id])
    )
    assert set(heard.values()) <= {1}
    assert len(heard) == people * facts
    single = [each for each in found.deliveries if each.kind is not NotificationKind.DIGEST]
    assert len(single) == found.mails["acme"] == min(people * facts, room)
    assert found.joined == people * facts - len(single)
    digests = [each for each in found.deliveries if each.kind is NotificationKind.DIGEST]
    assert all(each.due_time == START + timedelta(hours=1) for each in digests)
    assert len({each.id for each in found.deliveries}) == len(found.deliveries)


def test_webhooks_get_each_fact_and_wait_while_they_are_paused() -> None:
    hooks = [HOOK, replace(HOOK, id="w2", state=SubscriptionState.PAUSED)]
    audience = Audience(subscriptions={"acme": hooks})
    found = fan_out([FACT], audience, room={}, now=START, max_age=DAY)
    states = [(each.receiver, each.state) for each in found.deliveries]
    assert states == [("w1", DeliveryState.WAITING), ("w2", DeliveryState.PAUSED)]
    assert not audience.has(replace(FACT, organization_id="other"))


def test_a_daily_digest_takes_no_room_of_the_hour() -> None:
    audience = Audience(lists={("acme", ""): a_list(1, Mode.DIGEST)})
    published = replace(FACT, kind=NotificationKind.POST_PUBLISHED)
    found = fan_out([published, FACT], audience, room={"acme": 1}, now=START, max_age=DAY)
    assert sorted(each.kind for each in found.deliveries) == ["DIGEST", "POST_FAILED"]
    assert all(each.receiver == MAIL for each in found.deliveries)
    assert found.joined == 0


def test_an_hour_begins_at_its_first_microsecond() -> None:
    assert hour_of(START + timedelta(minutes=59, seconds=59, microseconds=7)) == START
