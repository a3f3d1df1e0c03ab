"""SendTestNotification reaches a webhook or a person on a list, and nobody else."""

from datetime import timedelta

from publisher_service.domain.delivery import Delivery, Trial
from publisher_service.domain.subscription import SubscriptionState
from testkit.calls import call
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified, failed


async def send_test(notified: Notified, request_id: str = "", **trial: str) -> Delivery:
    sent: Delivery = await notified.send_test(call("SendTest", request_id=request_id), Trial(**trial))
    return sent


async def test_a_webhook_and_a_person_get_it(notified: Notified) -> None:
    await notified.subscribe()
    await notified.recipients("ann", "bob", brand="shop")
    await send_test(notified, subscription_id="w1")
    await send_test(notified, email="ANN@example.com", brand_id="shop")
    await notified.all_sent()
    assert [each.json["type"] for each in notified.receiver.posted] == ["test"]
    assert [kept.message["Subject"] for kept in notified.smtp.kept] == ["A test notification of PostFlow"]
    assert notified.mailed() == ["ann"]


async def test_a_repeated_request_sends_one(notified: Notified) -> None:
    await notified.subscribe()
    first = await send_test(notified, "r1", subscription_id="w1")
    assert await send_test(notified, "r1", subscription_id="w1") == first
    await notified.all_sent()
    assert len(notified.receiver.posted) == 1


async def test_nobody_else_gets_it(notified: Notified) -> None:
    await notified.recipients("ann", brand="shop")
    assert (await fault_of(send_test(notified, subscription_id="w1"))).reason == "SUBSCRIPTION_NOT_FOUND"
    assert (await fault_of(send_test(notified, email="eve@example.com"))).reason == "RECIPIENT_NOT_FOUND"
    assert (await fault_of(send_test(notified, email="ann@example.com"))).reason == "RECIPIENT_NOT_FOUND"
    await notified.subscribe()
    await notified.switch(SubscriptionState.PAUSED)
    assert (await fault_of(send_test(notified, subscription_id="w1"))).reason == "SUBSCRIPTION_PAUSED"


async def test_ten_tests_wait_at_most(notified: Notified) -> None:
    await notified.subscribe()
    for _ in range(10):
        await send_test(notified, subscription_id="w1")
    assert (await fault_of(send_test(notified, subscription_id="w1"))).reason == "TEST_LIMIT_REACHED"
    await notified.all_sent()
    await send_test(notified, subscription_id="w1")


async def test_tests_are_mails_of_the_hour(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.record(failed(), mails_per_hour=60)
    for _ in range(59):
        await send_test(notified, email="ann@example.com")
        await notified.all_sent()
    refused = await fault_of(send_test(notified, email="ann@example.com"))
    assert (refused.reason, refused.retry_after) == ("TEST_LIMIT_REACHED", timedelta(hours=1))
    await notified.record(failed("j2"), mails_per_hour=60)
    await notified.all_sent()
    assert len(notified.mailed()) == 60
    await notified.subscribe()
    await send_test(notified, subscription_id="w1")
    notified.pass_time(timedelta(hours=1))
    await send_test(notified, email="ann@example.com")


async def test_a_refused_test_counts_for_nothing(notified: Notified) -> None:
    await notified.recipients("ann")
    for _ in range(10):
        await send_test(notified, email="ann@example.com")
    for _ in range(90):
        assert (await fault_of(send_test(notified, email="ann@example.com"))).reason == "TEST_LIMIT_REACHED"
    await notified.all_sent()
    await send_test(notified, email="ann@example.com")


async def test_an_hour_that_has_begun_meanwhile_is_counted(notified: Notified) -> None:
    await notified.recipients("ann")
    notified.pass_time(timedelta(hours=1))
    await send_test(notified, email="ann@example.com")
    notified.clock.moment -= timedelta(minutes=1)
    await send_test(notified, email="ann@example.com")
    (line,) = await notified.rows("select hour_mails from notification_line where receiver = ''")
    assert line.hour_mails == 2
