"""RetryDelivery sends what was given up, skipped or waits, at once and under its id."""

from datetime import timedelta

import pytest

from publisher_service.domain.delivery import Delivery
from publisher_service.domain.subscription import SubscriptionState
from testkit.calls import call
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified, failed


async def retry(notified: Notified, delivery_id: str, organization: str = "acme") -> Delivery:
    again: Delivery = await notified.retry_delivery(call("RetryDelivery", organization_id=organization), delivery_id)
    return again


@pytest.mark.parametrize("state", ["FAILED", "SKIPPED", "WAITING"])
async def test_a_delivery_is_sent_again_with_all_its_attempts(notified: Notified, state: str) -> None:
    await notified.subscribe()
    await notified.record(failed())
    (before,) = await notified.deliveries()
    await notified.write(
        """update delivery set state = cast(:state as text), attempts = 9, due_time = due_time + interval '1 day',
        end_time = case when :state = 'WAITING' then null else now() end""",
        state=state,
    )
    await notified.write("update notification_line set next_time = null")
    notified.pass_time(timedelta(days=2))
    again = await retry(notified, before.id)
    assert (again.attempts, again.due_time, again.expire_time) == (0, notified.clock.moment, None)
    await notified.all_sent()
    assert notified.receiver.ids == [before.id]


async def test_what_needs_no_retry_or_can_have_none_is_refused(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed())
    (delivery,) = await notified.deliveries()
    assert (await fault_of(retry(notified, "unknown"))).reason == "DELIVERY_NOT_FOUND"
    assert (await fault_of(retry(notified, delivery.id, "other"))).reason == "DELIVERY_NOT_FOUND"
    await notified.switch(SubscriptionState.PAUSED)
    assert (await fault_of(retry(notified, delivery.id))).reason == "SUBSCRIPTION_PAUSED"
    await notified.switch(SubscriptionState.ACTIVE)
    await notified.all_sent()
    assert (await fault_of(retry(notified, delivery.id))).reason == "DELIVERY_DELIVERED"
    notified.receiver.answer(410)
    await notified.record(failed("gone"))
    await notified.all_sent()
    (given_up,) = [each for each in await notified.deliveries() if each.state == "FAILED"]
    await notified.record(failed("j2"))
    await notified.delete_subscription(call("DeleteSubscription"), "w1", "")
    (canceled,) = [each for each in await notified.deliveries() if each.state == "CANCELED"]
    assert (await fault_of(retry(notified, canceled.id))).reason == "DELIVERY_CANCELED"
    assert (await fault_of(retry(notified, given_up.id))).reason == "DELIVERY_CANCELED"
    assert (await fault_of(retry(notified, delivery.id))).reason == "DELIVERY_DELIVERED"
    assert await notified.rows("select receiver from notification_line where receiver = 'w1'") == []
