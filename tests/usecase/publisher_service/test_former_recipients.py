"""Mails of people who were taken off the lists are skipped; those who are still on one get theirs."""

from datetime import timedelta

from publisher_service.domain.delivery import WAITS, DeliveryState, Trial
from publisher_service.domain.recipients import Mode, Preferences, Role
from testkit.calls import call
from testkit.smtp_server import At
from tests.usecase.publisher_service.notified import Notified, disconnected, failed, published

DIGEST = Preferences(published=Mode.DIGEST)


async def ended(notified: Notified) -> list[tuple[str, str, str]]:
    return [(each.email.partition("@")[0], each.state, each.error_reason) for each in await notified.deliveries()]


async def test_a_mail_in_retry_is_skipped_for_who_was_taken_off(notified: Notified) -> None:
    await notified.recipients("ann", "bob", brand="shop")
    notified.smtp.fail(At.MAIL, "451 4.3.0 later")
    await notified.record(failed(brand="shop"))
    await notified.turn()
    await notified.recipients("BOB", brand="shop")
    notified.pass_time(WAITS[0])
    await notified.all_sent()
    assert await ended(notified) == [
        ("ann", DeliveryState.SKIPPED, "NOT_A_RECIPIENT"),
        ("bob", DeliveryState.DELIVERED, ""),
    ]
    assert notified.mailed() == ["bob"]


async def test_a_digest_that_was_collecting_is_skipped(notified: Notified) -> None:
    await notified.recipients("ann", brand="shop", preferences=DIGEST)
    await notified.record(published("j1", brand="shop"), published("j2", brand="shop"))
    await notified.recipients(brand="shop")
    notified.pass_time(timedelta(days=1))
    await notified.all_sent()
    assert await ended(notified) == [("ann", DeliveryState.SKIPPED, "NOT_A_RECIPIENT")]


async def test_another_brand_is_no_reason_to_hear_of_this_one(notified: Notified) -> None:
    await notified.recipients("ann", brand="shop")
    await notified.recipients("ann", brand="other")
    await notified.record(failed(brand="shop"))
    await notified.recipients("bob", brand="shop")
    await notified.all_sent()
    assert notified.mailed() == []


async def test_another_list_that_it_concerns_is_a_reason(notified: Notified) -> None:
    """The mails were addressed through the default list."""
    await notified.record(failed("j0", brand="shop"))
    await notified.recipients("ann")
    await notified.record(failed("j1", brand="shop"), disconnected())
    await notified.recipients("ann", brand="shop", role=Role.ADMIN)
    await notified.recipients("bob")
    await notified.all_sent()
    assert notified.mailed() == ["ann", "ann"]


async def test_a_mail_of_the_default_list_outlives_a_new_list_of_its_brand(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.record(failed(brand="shop"))
    await notified.recipients("bob", brand="shop")
    await notified.all_sent()
    assert notified.mailed() == ["ann"]


async def test_a_test_goes_to_its_address(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.send_test(call("SendTest"), Trial(email="ann@example.com"))
    await notified.recipients("bob")
    await notified.all_sent()
    assert notified.mailed() == ["ann"]
