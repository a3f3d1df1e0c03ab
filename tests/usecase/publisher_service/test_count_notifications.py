"""Overdue deliveries are counted, and secrets are sealed with the first key of the ring."""

from datetime import timedelta

from publisher_service.adapters.vault import Vault, key_id_of
from publisher_service.adapters.webhook_secrets import open_secret
from publisher_service.application.count_notifications import CountNotifications
from servicekit.run.settings import Secret
from testkit.calls import call
from tests.usecase.publisher_service.notified import KEYS, Notified, failed

NEW = ("new", Secret("BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))


async def test_the_first_that_waits_is_counted(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.subscribe()
    await notified.record(failed())
    notified.pass_time(timedelta(minutes=7))
    await notified.counted.count()
    assert await notified.counted.overdue() == {"EMAIL": 420.0, "WEBHOOK": 420.0}
    await notified.all_sent()
    assert await notified.counted.overdue() == {"EMAIL": 0.0, "WEBHOOK": 0.0}


async def test_secrets_get_the_first_key_while_it_is_rotated(notified: Notified) -> None:
    _, former = await notified.subscribe()
    _, secret = await notified.rotate_secret(call("Rotate"), "w1", timedelta(hours=1))
    ring = Vault([NEW, *KEYS])
    counted = CountNotifications(database=notified.database, clock=notified.clock, vault=ring, is_mail_on=True)
    assert not await counted.reseal()
    (row,) = await notified.rows("select * from webhook_subscription")
    assert {key_id_of(row.secret), key_id_of(row.former_secret)} == {"new"}
    names = {"organization_id": "acme", "subscription_id": "w1"}
    alone = Vault([NEW])
    assert [open_secret(alone, each, **names) for each in (row.secret, row.former_secret)] == [secret, former]
    assert not await counted.reseal()
    assert (await notified.rows("select * from webhook_subscription")) == [row]


async def test_a_secret_that_no_key_opens_stays_as_it_is(notified: Notified) -> None:
    await notified.subscribe()
    before = await notified.rows("select secret from webhook_subscription")
    counted = CountNotifications(database=notified.database, clock=notified.clock, vault=Vault([NEW]), is_mail_on=True)
    await counted.reseal()
    assert await notified.rows("select secret from webhook_subscription") == before
    await notified.record(failed())
    await notified.turn(mail=False, send=notified.sender(vault=Vault([NEW])))
    (delivery,) = await notified.deliveries()
    assert (delivery.error_reason, delivery.state) == ("SECRET_UNREADABLE", "WAITING")
