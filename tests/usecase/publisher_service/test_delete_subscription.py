"""DeleteSubscription leaves nothing of a webhook but the record of its deliveries."""

from publisher_service.adapters.postgres.notification_lines import Room
from testkit.calls import call
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified, failed


async def delete(notified: Notified, etag: str = "", name: str = "w1") -> object:
    return await notified.delete_subscription(call("DeleteSubscription"), name, etag)


async def test_what_waits_for_it_is_canceled(notified: Notified) -> None:
    await notified.subscribe()
    await notified.subscribe("w2")
    await notified.record(failed())
    await delete(notified)
    await notified.all_sent()
    assert await notified.states() == ["CANCELED", "DELIVERED"]
    assert len(await notified.rows("select 1 from notification_line")) == 1
    assert (await fault_of(delete(notified))).reason == "SUBSCRIPTION_NOT_FOUND"


async def test_only_the_state_that_was_read_is_deleted(notified: Notified) -> None:
    subscription, _ = await notified.subscribe()
    assert (await fault_of(delete(notified, "7"))).reason == "ETAG_MISMATCH"
    await delete(notified, subscription.etag)


async def test_a_turn_that_is_under_way_ends_without_it(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed("j1"), failed("j2"))
    (turn,) = await notified.send.take(Room(mail=False, quick=1, slow=1, most=1))
    await delete(notified)
    notified.receiver.answer(500)
    await notified.send(turn)
    assert await notified.states() == ["CANCELED", "CANCELED"]
