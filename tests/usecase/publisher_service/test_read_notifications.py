"""Lists of recipients, webhooks and deliveries come in pages, of one organization alone."""

from datetime import timedelta

from publisher_service.domain.delivery import DeliveryFilter, DeliveryState
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified, failed


async def test_deliveries_are_listed_newest_first_with_their_subjects(notified: Notified) -> None:
    await notified.subscribe()
    await notified.recipients("ann")
    for number in range(3):
        await notified.record(failed(f"j{number}"))
        notified.pass_time(timedelta(seconds=1))
    await notified.all_sent()
    wanted = DeliveryFilter(organization_id="acme", receiver="w1")
    first = await notified.read.deliveries(wanted, before=None, limit=2)
    assert [subject for _, subject in first] == ["j2", "j1"]
    last = first[-1][0]
    rest = await notified.read.deliveries(wanted, before=(last.create_time, last.id), limit=2)
    assert [subject for _, subject in rest] == ["j0"]
    delivered = DeliveryFilter(organization_id="acme", states=(DeliveryState.DELIVERED,))
    assert len(await notified.read.deliveries(delivered, before=None, limit=99)) == 6


async def test_nothing_of_another_organization_is_seen(notified: Notified) -> None:
    await notified.subscribe()
    await notified.recipients("ann")
    await notified.record(failed())
    assert (await fault_of(notified.read.recipients("other", ""))).reason == "RECIPIENTS_NOT_FOUND"
    assert (await fault_of(notified.read.subscription("other", "w1"))).reason == "SUBSCRIPTION_NOT_FOUND"
    assert await notified.read.recipient_lists("other", after=None, limit=9) == []
    assert await notified.read.subscriptions("other", after="", limit=9) == []
    assert await notified.deliveries("other") == []


async def test_lists_come_in_the_order_of_their_brands(notified: Notified) -> None:
    for brand in ("b", "", "a"):
        await notified.recipients("ann", brand=brand)
    first = await notified.read.recipient_lists("acme", after=None, limit=2)
    assert [each.brand_id for each in first] == ["", "a"]
    assert [each.brand_id for each in await notified.read.recipient_lists("acme", after="a", limit=2)] == ["b"]
    assert [each.brand_id for each in await notified.read.recipient_lists("acme", after="", limit=2)] == ["a", "b"]
