"""RotateSubscriptionSecret replaces a secret; the former one ends with the overlap, the one before it at once."""

from datetime import timedelta

from testkit.calls import call
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified

HOUR = timedelta(hours=1)


async def rotate(notified: Notified, name: str = "w1", overlap: timedelta = HOUR) -> tuple[object, object]:
    rotated: tuple[object, object] = await notified.rotate_secret(call("Rotate"), name, overlap)
    return rotated


async def test_two_secrets_sign_at_most(notified: Notified) -> None:
    subscription, first = await notified.subscribe()
    _, second = await rotate(notified)
    (after_one,) = await notified.rows("select * from webhook_subscription")
    assert after_one.former_secret_end_time == notified.clock.moment + HOUR
    _, third = await rotate(notified)
    assert len({first, second, third}) == 3
    (after_two,) = await notified.rows("select * from webhook_subscription")
    assert after_two.former_secret == after_one.secret
    assert (await notified.subscription()).etag == subscription.etag


async def test_without_an_overlap_the_former_secret_ends_at_once(notified: Notified) -> None:
    await notified.subscribe()
    await rotate(notified)
    await rotate(notified, overlap=timedelta(0))
    (row,) = await notified.rows("select * from webhook_subscription")
    assert (row.former_secret, row.former_secret_end_time) == (None, None)


async def test_an_unknown_webhook_has_no_secret(notified: Notified) -> None:
    assert (await fault_of(rotate(notified))).reason == "SUBSCRIPTION_NOT_FOUND"
