"""UpdateSubscription changes what people set; a paused webhook gets what has waited when it is resumed."""

from datetime import timedelta

from publisher_service.domain.notification import NotificationKind
from publisher_service.domain.subscription import PauseReason, SubscriptionChange, SubscriptionState
from testkit.calls import call
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified, failed, published


async def update(notified: Notified, **fields: object) -> object:
    change = SubscriptionChange(organization_id="acme", **{"id": "w1", **fields})  # type: ignore[arg-type]
    return await notified.update_subscription(call("UpdateSubscription"), change)


async def test_only_what_is_named_changes(notified: Notified) -> None:
    before, _ = await notified.subscribe(kinds=(NotificationKind.POST_FAILED,), description="first")
    await update(notified, description="second", etag=before.etag)
    after = await notified.subscription()
    assert (after.kinds, after.description, after.etag) == (before.kinds, "second", "2")
    await update(notified, description="second")
    assert (await notified.subscription()).etag == "2"


async def test_unknown_stale_and_private_are_refused(notified: Notified) -> None:
    await notified.subscribe()
    assert (await fault_of(update(notified, id="w2", description="x"))).reason == "SUBSCRIPTION_NOT_FOUND"
    assert (await fault_of(update(notified, description="x", etag="7"))).reason == "ETAG_MISMATCH"
    assert (await fault_of(update(notified, url="https://10.0.0.1/"))).reason == "URL_IP_ADDRESS"


async def test_a_resumed_webhook_gets_what_has_waited(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed("before"))
    paused = await notified.switch(SubscriptionState.PAUSED)
    assert paused.state_reason is PauseReason.BY_REQUEST
    await notified.record(failed("meanwhile"))
    assert await notified.turn(mail=False) == 0
    await notified.switch(SubscriptionState.ACTIVE)
    await notified.all_sent()
    posts = {each.json["data"]["post_job_id"] for each in notified.receiver.posted}
    assert posts == {"before", "meanwhile"}
    assert await notified.states() == ["DELIVERED", "DELIVERED"]


async def test_what_has_waited_for_more_than_a_day_is_skipped(notified: Notified) -> None:
    await notified.subscribe()
    await notified.switch(SubscriptionState.PAUSED)
    await notified.record(published())
    notified.pass_time(timedelta(hours=25))
    await notified.switch(SubscriptionState.ACTIVE)
    await notified.all_sent()
    assert await notified.states() == ["SKIPPED"]


async def test_a_resumed_webhook_begins_without_failures(notified: Notified) -> None:
    await notified.subscribe()
    notified.receiver.answer(410)
    await notified.record(failed("j1"))
    await notified.all_sent()
    assert (await notified.subscription()).is_paused
    await notified.switch(SubscriptionState.ACTIVE)
    after = await notified.subscription()
    assert (after.failures, after.exhausted, after.failing_since) == (0, 0, None)
    await notified.record(failed("j2"))
    await notified.all_sent()
    assert len(notified.receiver.posted) == 2
