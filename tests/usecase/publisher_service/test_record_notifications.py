"""Facts are recorded once for each who is to be notified, also if it comes twice, late or in another order."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from publisher_service.domain.credentials import Credentials
from publisher_service.domain.delivery import DeliveryState
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.recipients import Mode, Preferences, Role
from publisher_service.domain.subscription import SubscriptionState
from testkit.clocks import START
from tests.usecase.publisher_service.notified import Notified, disconnected, failed, published, shuffled


async def mailed_to(notified: Notified) -> list[str]:
    return sorted(each.email.partition("@")[0] for each in await notified.deliveries() if each.email)


async def test_a_post_concerns_the_people_of_its_brand(notified: Notified) -> None:
    await notified.recipients("boss")
    await notified.recipients("ann", "bob", brand="shop", role=Role.EDITOR)
    await notified.record(published(brand="shop"))
    assert await mailed_to(notified) == ["ann", "bob"]


@pytest.mark.parametrize("brand", ["", "unknown", "empty"])
async def test_a_post_without_people_of_its_own_concerns_the_default(notified: Notified, brand: str) -> None:
    await notified.recipients("boss")
    await notified.recipients(brand="empty")
    await notified.record(published(brand=brand))
    assert await mailed_to(notified) == ["boss"]


async def test_an_account_concerns_the_default_list_and_admins(notified: Notified) -> None:
    await notified.recipients("boss", "ann", role=Role.EDITOR)
    await notified.recipients("ann", "carl", brand="shop")
    await notified.recipients("dora", brand="other-shop")
    await notified.recipients("eve", brand="shop-of-editors", role=Role.EDITOR)
    await notified.record(published("j1", brand="shop"), published("j2", brand="shop-of-editors"))
    await notified.write("delete from delivery")
    await notified.record(disconnected())
    assert await mailed_to(notified) == ["ann", "boss", "carl"]


async def test_replayed_doubled_and_shuffled_facts_reach_nobody_twice(notified: Notified) -> None:
    await notified.recipients("ann", "bob")
    await notified.recipients("ann", brand="shop")
    await notified.subscribe()
    happened = [published("j1"), failed("j1"), failed("j1", run=2), published("j2", brand="shop"), disconnected()]
    await notified.record(*happened)
    first = {each.id for each in await notified.deliveries()}
    assert len(first) == 2 * 4 + 1 + 5
    await notified.record(*shuffled(happened))
    for each in shuffled(happened):
        await notified.record(each)
    assert {each.id for each in await notified.deliveries()} == first


async def test_two_processes_that_record_at_once_reach_nobody_twice(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.subscribe()
    happened = [published(f"j{number}") for number in range(50)]
    async with asyncio.TaskGroup() as group:
        for facts in (happened, shuffled(happened), happened):
            group.create_task(notified.record(*facts))
    assert len(await notified.deliveries()) == 100


async def test_a_disconnection_is_one_notification_for_thousands_of_posts(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.record(disconnected(at="t1"))
    await notified.record(disconnected(at="t1", account_name="renamed meanwhile"))
    await notified.record(disconnected(at="t2"))
    kinds = [each.kind for each in await notified.deliveries()]
    assert kinds == [NotificationKind.ACCOUNT_DISCONNECTED] * 2


async def test_what_is_older_than_a_day_reaches_nobody(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.subscribe()
    month = [published(f"j{days}", ago=timedelta(days=days)) for days in range(2, 30)]
    await notified.record(*month, published("j0", ago=timedelta(hours=23)))
    assert len(await notified.deliveries()) == 2
    assert len(await notified.rows("select 1 from notification")) == 1


async def test_where_nobody_listens_nothing_is_stored(notified: Notified) -> None:
    await notified.record(published(), disconnected())
    await notified.recipients("ann", preferences=Preferences(kinds=(NotificationKind.POST_FAILED,)))
    await notified.recipients("eve", organization="other")
    await notified.record(published())
    assert await notified.rows("select 1 from notification") == []
    assert await notified.rows("select 1 from notification_line") == []


@pytest.mark.parametrize(
    ("preferences", "kinds"),
    [
        (Preferences(published=Mode.EACH), ["ACCOUNT_DISCONNECTED", "POST_FAILED", "POST_PUBLISHED"]),
        (Preferences(published=Mode.NONE), ["ACCOUNT_DISCONNECTED", "POST_FAILED"]),
        (Preferences(published=Mode.DIGEST), ["ACCOUNT_DISCONNECTED", "DIGEST", "POST_FAILED"]),
        (Preferences(published=Mode.EACH, kinds=(NotificationKind.POST_PUBLISHED,)), ["POST_PUBLISHED"]),
        (Preferences(kinds=(NotificationKind.POST_FAILED,)), ["POST_FAILED"]),
    ],
    ids=["each", "none", "digest", "only published", "only failed"],
)
async def test_preferences_choose_the_mails(notified: Notified, preferences: Preferences, kinds: list[str]) -> None:
    await notified.recipients("ann", preferences=preferences)
    await notified.record(published(), failed("j2"), disconnected())
    assert sorted(each.kind for each in await notified.deliveries()) == kinds


async def test_a_digest_comes_at_its_local_hour_and_joins_all(notified: Notified) -> None:
    digest = Preferences(digest_hour=8)
    await notified.recipients("ann", brand="shop", preferences=digest, zone="America/New_York")
    for number in range(3):
        await notified.record(published(f"j{number}", brand="shop"))
        notified.pass_time(timedelta(minutes=10))
    (digest_of_day,) = await notified.deliveries()
    # The clocks of New York are five hours behind on this day.
    assert (digest_of_day.due_time, digest_of_day.items) == (datetime(2026, 3, 2, 13, tzinfo=UTC), 3)
    notified.pass_time(timedelta(days=6))
    notified.clock.moment = datetime(2026, 3, 8, 12, 30, tzinfo=UTC)  # they have gone forward in this night
    await notified.record(published("later", brand="shop", ago=START - notified.clock.moment))
    assert (await notified.deliveries())[-1].due_time == datetime(2026, 3, 9, 12, tzinfo=UTC)


async def test_too_many_mails_of_an_hour_become_a_digest(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.recipients("eve", organization="other")
    happened = [failed(f"j{number}") for number in range(30)]
    await notified.record(*happened[:15], mails_per_hour=10)
    await notified.record(*happened[15:], *(failed("j1", organization="other"),), mails_per_hour=10)
    *single, digest = sorted(await notified.deliveries(), key=lambda each: each.due_time)
    assert [each.kind for each in single] == [NotificationKind.POST_FAILED] * 10
    assert (digest.kind, digest.items, digest.due_time) == (NotificationKind.DIGEST, 20, START + timedelta(hours=1))
    assert [each.kind for each in await notified.deliveries("other")] == [NotificationKind.POST_FAILED]
    notified.pass_time(timedelta(hours=1))
    await notified.record(failed("next"), mails_per_hour=10)
    assert [each.kind for each in await notified.deliveries()].count(NotificationKind.POST_FAILED) == 11


async def test_a_digest_keeps_a_hundred_and_counts_the_others(notified: Notified) -> None:
    await notified.recipients("ann", preferences=Preferences())
    for first in range(0, 160, 40):
        await notified.record(*(published(f"j{number}") for number in range(first, first + 40)))
    (digest,) = await notified.deliveries()
    assert digest.items == 160
    assert len(await notified.rows("select 1 from digest_item")) == 100


async def test_webhooks_get_the_kinds_and_brands_they_ask_for(notified: Notified) -> None:
    await notified.subscribe("all")
    await notified.subscribe("failed", kinds=(NotificationKind.POST_FAILED,))
    await notified.subscribe("shop", brand_ids=("shop",))
    await notified.subscribe("foreign", organization="other")
    await notified.record(published("j1", brand="shop"), failed("j2"), disconnected(), disconnected("bot"))
    found = [(each.receiver, each.kind) for each in await notified.deliveries()]
    about_account = NotificationKind.ACCOUNT_DISCONNECTED
    assert sorted(found) == [
        ("all", about_account),
        ("all", about_account),
        ("all", NotificationKind.POST_FAILED),
        ("all", NotificationKind.POST_PUBLISHED),
        ("failed", NotificationKind.POST_FAILED),
        ("shop", about_account),
        ("shop", NotificationKind.POST_PUBLISHED),
    ]


async def test_what_happens_while_a_webhook_is_paused_waits(notified: Notified) -> None:
    await notified.subscribe()
    await notified.switch(SubscriptionState.PAUSED)
    await notified.record(published())
    (waiting,) = await notified.deliveries()
    assert waiting.state is DeliveryState.PAUSED
    assert await notified.turn(mail=False) == 0


async def test_no_token_of_an_account_reaches_what_is_stored(notified: Notified) -> None:
    canary = "canary-of-the-page"
    sealed = notified.vault.seal(Credentials(access_token=canary), organization_id="acme", account_id="page")
    await notified.write(
        """insert into social_account (organization_id, id, provider, external_account_id, display_name, channels,
        state, credentials, version, create_time, update_time)
        values ('acme', 'page', 'sandbox', 'e', 'The page', '{}', 'CONNECTED', :sealed, 1, now(), now())""",
        sealed=sealed,
    )
    await notified.recipients("ann")
    await notified.record(failed(error_message=f"no: {canary}, nor access_token=EAAB8x and EAAGm0PX4ZCpsBAOZBxyz123"))
    (stored,) = await notified.rows("select facts from notification")
    assert stored.facts["error_message"] == "no: ***, nor access_token=*** and ***"
    assert stored.facts["account_name"] == "The page"


async def test_an_expiry_is_recorded_like_any_other_fact(notified: Notified) -> None:
    await notified.recipients("ann")
    expiry = Notification(
        organization_id="acme",
        kind=NotificationKind.ACCOUNT_EXPIRES_SOON,
        subject_id="page",
        occasion="2026-03-09T09:00:00Z",
        time=START,
        social_account_id="page",
        facts={"expire_time": "2026-03-09T09:00:00Z"},
    )
    await notified.record(expiry, expiry)
    assert [each.kind for each in await notified.deliveries()] == [NotificationKind.ACCOUNT_EXPIRES_SOON]
