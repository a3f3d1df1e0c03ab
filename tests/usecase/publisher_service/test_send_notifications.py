"""Deliveries are sent at least once, under one id, and retried as Standard Webhooks and SMTP say."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.postgres.notification_lines import Room
from publisher_service.adapters.standard_webhooks import verify
from publisher_service.adapters.webhooks import Webhooks
from publisher_service.domain.delivery import WAITS, DeliveryState, Result
from publisher_service.domain.recipients import Preferences
from publisher_service.domain.subscription import PauseReason, SubscriptionState
from servicekit import failpoints
from testkit.calls import call
from testkit.smtp_server import At
from tests.usecase.publisher_service.notified import Notified, disconnected, failed, published

LEASE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def healthy() -> Iterator[None]:
    """Disarms the failpoints for the tests that follow."""
    yield
    failpoints.install("", "test")


async def test_a_mail_arrives_with_text_and_html(notified: Notified) -> None:
    await notified.recipients("ann", brand="shop", name="The shop", zone="Europe/Berlin")
    await notified.record(published(brand="shop", external_url="https://example.com/p/1"))
    await notified.all_sent()
    (kept,) = notified.smtp.kept
    (delivery,) = await notified.deliveries()
    assert kept.message["Subject"] == "[The shop] Published on page (facebook)"
    assert kept.message["Message-ID"] == f"<{delivery.id}@example.com>"
    assert kept.message["To"] == "ann <ann@example.com>"
    assert kept.message["List-Unsubscribe"] == "<mailto:postflow@example.com?subject=unsubscribe>"
    parts = {part.get_content_type(): part.get_content() for part in kept.message.walk() if not part.is_multipart()}
    assert parts.keys() == {"text/plain", "text/html"}
    for text in parts.values():
        assert "2026-03-02 10:00 (Europe/Berlin)" in text
        assert "https://example.com/p/1" in text
    assert delivery.state is DeliveryState.DELIVERED


async def test_a_webhook_gets_a_signed_message(notified: Notified) -> None:
    _, secret = await notified.subscribe()
    await notified.record(failed(error_message="too large"))
    await notified.all_sent()
    (posted,) = notified.receiver.posted
    (delivery,) = await notified.deliveries()
    assert verify(posted.headers, posted.body, secret, now=notified.system.now()) == delivery.id
    assert posted.headers["content-type"] == "application/json"
    assert posted.json == {
        "type": "post.failed",
        "timestamp": "2026-03-02T09:00:00Z",
        "data": {
            "organization_id": "acme",
            "post_job_id": "j1",
            "draft_id": "d-j1",
            "channel": "facebook",
            "error_message": "too large",
        },
    }


async def test_during_a_rotation_both_secrets_sign(notified: Notified) -> None:
    _, former = await notified.subscribe()
    _, latter = await notified.rotate_secret(call("RotateSubscriptionSecret"), "w1", timedelta(hours=1))
    await notified.record(published())
    await notified.all_sent()
    (posted,) = notified.receiver.posted
    for secret in (former, latter):
        verify(posted.headers, posted.body, secret, now=notified.system.now())
    notified.pass_time(timedelta(hours=1))
    await notified.record(published("j2"))
    await notified.all_sent()
    assert len(notified.receiver.posted[1].headers["webhook-signature"].split()) == 1


async def test_a_webhook_is_tried_ten_times_under_one_id(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed())
    notified.receiver.usually(500)
    # Every now and then another delivery is accepted, so that the webhook is not paused meanwhile.
    for wait in (timedelta(0), *WAITS):
        notified.pass_time(wait)
        await notified.write("update webhook_subscription set failing_since = null")
        assert await notified.turn(mail=False) == 1
        assert await notified.turn(mail=False) == 0
    (delivery,) = await notified.deliveries()
    assert (delivery.state, delivery.attempts, delivery.error_reason) == (DeliveryState.FAILED, 10, "HTTP_500")
    assert notified.receiver.ids == [delivery.id] * 10
    bodies = {each.body for each in notified.receiver.posted}
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("status", "reason"), [(301, "HTTP_301"), (404, "HTTP_404"), (500, "HTTP_500"), (None, "CONNECTION_LOST")]
)
async def test_any_answer_but_success_is_a_failure(notified: Notified, status: int | None, reason: str) -> None:
    await notified.subscribe()
    await notified.record(failed())
    notified.receiver.usually(status)
    await notified.all_sent()
    (delivery,) = await notified.deliveries()
    assert delivery.state is DeliveryState.WAITING
    assert delivery.due_time == notified.clock.moment + WAITS[0]
    # The reason of a broken connection is that of the adapter for addresses of users.
    assert delivery.error_reason == reason or status is None
    assert len(notified.receiver.posted) == 1


@pytest.mark.parametrize("status", [429, 502, 504])
async def test_a_webhook_that_has_too_much_is_left_alone(notified: Notified, status: int) -> None:
    await notified.subscribe()
    await notified.record(failed("j1"), failed("j2"))
    notified.receiver.answer(status, retry_after="600")
    await notified.all_sent()
    assert len(notified.receiver.posted) == 1
    notified.pass_time(timedelta(seconds=599))
    assert await notified.turn(mail=False) == 0
    notified.pass_time(timedelta(seconds=1))
    await notified.all_sent()
    assert await notified.states() == ["DELIVERED", "DELIVERED"]


async def test_410_pauses_the_webhook_at_once(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed("j1"), failed("j2"))
    notified.receiver.answer(410)
    await notified.all_sent()
    subscription = await notified.subscription()
    assert (subscription.state, subscription.state_reason) == (SubscriptionState.PAUSED, PauseReason.GONE)
    assert await notified.states() == ["FAILED", "PAUSED"]
    await notified.switch(SubscriptionState.ACTIVE)
    await notified.all_sent()
    assert await notified.states() == ["DELIVERED", "FAILED"]


async def test_three_days_without_success_pause_a_webhook(notified: Notified) -> None:
    await notified.subscribe()
    notified.receiver.usually(500)
    await notified.record(failed())
    for _ in range(8):
        await notified.turn(mail=False)
        notified.pass_time(timedelta(hours=12))
    subscription = await notified.subscription()
    assert (subscription.state, subscription.state_reason) == (SubscriptionState.PAUSED, PauseReason.FAILURES)
    assert len(notified.receiver.posted) == 7


async def test_five_deliveries_given_up_in_a_row_pause_a_webhook(notified: Notified) -> None:
    await notified.subscribe()
    notified.receiver.usually(500)
    await notified.record(*(failed(f"j{number}") for number in range(5)))
    await notified.write("update delivery set attempts = 9")
    for _ in range(5):
        await notified.turn(mail=False)
        notified.pass_time(timedelta(minutes=10))
    subscription = await notified.subscription()
    assert (subscription.state, subscription.exhausted) == (SubscriptionState.PAUSED, 5)
    assert await notified.states() == ["FAILED"] * 5


async def test_a_webhook_that_fails_is_asked_less_and_less(notified: Notified) -> None:
    """Its line is left alone for longer each time, however many deliveries wait in it."""
    await notified.subscribe()
    notified.receiver.usually(500)
    await notified.record(*(failed(f"j{number}") for number in range(50)))
    for pause in (5, 10, 20, 40):
        assert await notified.turn(mail=False) == 1
        assert await notified.turn(mail=False) == 0
        notified.pass_time(timedelta(seconds=pause))
    assert len(notified.receiver.posted) == 4


async def test_a_refused_recipient_holds_up_nobody(notified: Notified) -> None:
    await notified.recipients("ann", "bob")
    notified.smtp.fail(At.RCPT, "550 5.1.1 nobody", about="ann@", times=9)
    await notified.record(failed("j1"), failed("j2"))
    await notified.all_sent()
    found = {(each.email, each.state, each.error_reason) for each in await notified.deliveries()}
    assert found == {
        ("ann@example.com", DeliveryState.FAILED, "SMTP_550"),
        ("bob@example.com", DeliveryState.DELIVERED, ""),
    }
    assert notified.mailed() == ["bob", "bob"]


async def test_a_mail_that_cannot_be_written_holds_up_nobody(notified: Notified) -> None:
    await notified.recipients("ann", "bob")
    await notified.record(failed())
    for table, column in (("delivery", "email"), ("recipient_list", "recipients")):
        await notified.write(f"""
            update {table} set {column} = replace({column}::text, 'ann@example', '=?utf-8?q?x?=@example')
            ::{"text" if column == "email" else "jsonb"}
        """)  # noqa: S608
    await notified.all_sent()
    assert sorted((each.state, each.error_reason) for each in await notified.deliveries()) == [
        (DeliveryState.DELIVERED, ""),
        (DeliveryState.FAILED, "DEFECT"),
    ]
    assert notified.mailed() == ["bob"]


async def test_a_message_whose_call_raises_holds_up_nobody(notified: Notified) -> None:
    class Defective(Webhooks):
        async def post(self, *args: object, **names: object) -> Result:
            raise ZeroDivisionError

    await notified.subscribe()
    await notified.record(failed("j1"))
    await notified.turn(mail=False, send=notified.sender(webhooks=Defective(Outside(), timeout=LEASE)))
    await notified.record(failed("j2"))
    await notified.all_sent()
    assert await notified.states() == ["DELIVERED", "FAILED"]


@pytest.mark.parametrize("at", [At.MAIL, At.RCPT, At.DATA, At.BODY])
async def test_a_mail_is_retried_after_a_passing_refusal(notified: Notified, at: At) -> None:
    await notified.recipients("ann")
    notified.smtp.fail(at, "451 4.3.0 later")
    await notified.record(failed())
    await notified.all_sent()
    (delivery,) = await notified.deliveries()
    assert (delivery.state, delivery.error_reason) == (DeliveryState.WAITING, "SMTP_451")
    notified.pass_time(WAITS[0])
    await notified.all_sent()
    assert notified.mailed() == ["ann"]


async def test_a_mail_of_unknown_outcome_is_repeated_under_one_id(notified: Notified) -> None:
    await notified.recipients("ann")
    notified.smtp.fail(At.KEPT)
    await notified.record(failed())
    await notified.all_sent()
    notified.pass_time(WAITS[0])
    await notified.all_sent()
    assert len({kept.message["Message-ID"] for kept in notified.smtp.kept}) == 1
    assert len(notified.smtp.kept) == 2
    assert await notified.states() == ["DELIVERED"]


@pytest.mark.parametrize("name", ["publisher.notify.taken", "publisher.notify.sent", "publisher.notify.recorded"])
async def test_a_process_that_dies_loses_nothing(notified: Notified, name: str) -> None:
    """Anything sent and not recorded is repeated after the lease, under the id that it had."""
    await notified.recipients("ann")
    await notified.subscribe()
    await notified.record(failed())
    for mail in (True, False):
        failpoints.install(f"{name}=raise:once", "test")
        with pytest.raises(failpoints.FailpointHit):
            await notified.turn(mail=mail)
    failpoints.install("", "test")
    assert await notified.turn(mail=False) + await notified.turn(mail=True) == 0
    notified.pass_time(LEASE)
    await notified.all_sent()
    assert await notified.states() == ["DELIVERED", "DELIVERED"]
    assert len({kept.message["Message-ID"] for kept in notified.smtp.kept}) == 1
    assert len(set(notified.receiver.ids)) == 1
    repeats = 2 if name.endswith("sent") else 1
    assert len(notified.smtp.kept) == len(notified.receiver.posted) == repeats


async def test_a_process_that_stalls_records_success_and_no_failure(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed("j1"))
    (late,) = await notified.send.take(Room(mail=False, quick=1, slow=1, most=1))
    notified.pass_time(LEASE)
    notified.receiver.answer(500)
    await notified.turn(mail=False)
    after = await notified.deliveries()
    notified.receiver.answer(500)
    await notified.send(replace(late, taken=notified.system.monotonic()))
    assert await notified.deliveries() == after
    await notified.send(replace(late, taken=notified.system.monotonic()))
    assert await notified.states() == ["DELIVERED"]


async def test_a_line_has_one_turn_at_a_time(notified: Notified) -> None:
    await notified.subscribe()
    await notified.record(failed("j1"))
    (turn,) = await notified.send.take(Room(mail=False, quick=9, slow=9, most=9))
    await notified.record(failed("j2"))
    assert await notified.send.take(Room(mail=False, quick=9, slow=9, most=9)) == []
    await notified.send(turn)
    await notified.all_sent()
    assert await notified.states() == ["DELIVERED", "DELIVERED"]


async def test_a_digest_joins_what_has_happened(notified: Notified) -> None:
    await notified.recipients("ann", brand="shop", name="The shop", preferences=Preferences())
    await notified.record(*(published(f"j{number}", brand="shop") for number in range(130)))
    assert await notified.turn() == 0
    notified.pass_time(timedelta(days=1))
    await notified.all_sent()
    (kept,) = notified.smtp.kept
    assert kept.message["Subject"] == "[The shop] 130 updates on your posts"
    body = kept.message.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert text.count("- Published on page, facebook") == 100
    assert "And 30 more." in text


async def test_what_waited_for_a_day_unsent_is_skipped(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.subscribe()
    await notified.record(failed())
    notified.pass_time(timedelta(hours=25))
    await notified.all_sent()
    assert await notified.states() == ["SKIPPED", "SKIPPED"]
    assert not notified.smtp.kept
    assert not notified.receiver.posted


async def test_without_mail_mails_wait_and_say_so(notified: Notified) -> None:
    notified.read._is_mail_on = False
    await notified.recipients("ann")
    await notified.record(failed())
    (waiting,) = await notified.deliveries(states=(DeliveryState.OFF,))
    assert waiting.state is DeliveryState.OFF
    assert await notified.deliveries(states=(DeliveryState.WAITING,)) == []
    assert not notified.sender(post=None).is_mail_on


async def test_people_are_reassured_about_a_disconnection(notified: Notified) -> None:
    await notified.recipients("ann")
    await notified.record(disconnected(account_name='The "shop" <b>', error_message="<script>no</script>"))
    await notified.all_sent()
    (kept,) = notified.smtp.kept
    html, plain = kept.message.get_body(("html",)), kept.message.get_body(("plain",))
    assert html is not None
    assert plain is not None
    link = "https://app.example.com/reconnect?organization_id=acme&social_account_id=page"
    assert link in plain.get_content()
    assert link.replace("&", "&amp;") in html.get_content()
    assert "nothing is lost" in plain.get_content()
    assert "<script>" not in html.get_content()
    assert "&lt;script&gt;" in html.get_content()
