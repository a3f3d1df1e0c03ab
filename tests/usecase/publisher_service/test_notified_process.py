"""A whole process notifies people of what happens to its posts and accounts, and repeats no secret."""

import logging
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from postflow.drafts.v1.drafts_events_pb2 import BRAND_ROLE_ADMIN, BrandRecipient, BrandSaved
from postflow.publisher.v1 import notification_pb2 as msg
from postflow.publisher.v1 import notification_service_pb2 as pb
from postflow.publisher.v1 import social_account_service_pb2
from servicekit.run.settings import Secret
from testkit.eventually import eventually
from testkit.smtp_server import At, SmtpServer
from testkit.webhook_receiver import WebhookReceiver
from tests.usecase.publisher_service.rig import Rig, Start

CANARY = "canary-4711-password"


def mails(folder: Path) -> dict[str, EmailMessage]:
    """Returns the mails of the folder by their subjects."""
    found = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in folder.glob("*.eml")]
    return {str(each["Subject"]): each for each in found}


async def listen(rig: Rig, *, published: msg.PublishedMode = msg.PUBLISHED_MODE_EACH) -> None:
    await rig.notifications.PutRecipients(
        pb.PutRecipientsRequest(
            organization_id="acme",
            recipient_list=msg.RecipientList(
                recipients=[msg.Recipient(email="ann@example.com", role=msg.RECIPIENT_ROLE_ADMIN)],
                preferences=msg.Preferences(published=published),
            ),
        )
    )


async def test_posts_and_disconnections_are_mailed(start: Start, tmp_path: Path) -> None:
    async with start(mail_url=Secret(f"file://{tmp_path}"), reconnect_url="https://app.example.com/again") as rig:
        await rig.connect()
        await listen(rig)
        await rig.post_many(1)
        await eventually(lambda: "Published on page (facebook)" in mails(tmp_path))
        await rig.accounts.DisconnectAccount(
            social_account_service_pb2.DisconnectAccountRequest(organization_id="acme", social_account_id="page")
        )
        await eventually(lambda: "page needs to be connected again" in mails(tmp_path))
        body = mails(tmp_path)["page needs to be connected again"].get_body(("plain",))
        assert body is not None
        assert "https://app.example.com/again?organization_id=acme&social_account_id=page" in body.get_content()
        assert len(mails(tmp_path)) == 2


async def test_a_brand_of_drafts_gets_its_mails(start: Start, tmp_path: Path) -> None:
    async with start(mail_url=Secret(f"file://{tmp_path}")) as rig:
        recipient = BrandRecipient(email="bob@example.com", name="Bob", role=BRAND_ROLE_ADMIN)
        saved = BrandSaved(organization_id="acme", brand_id="shop", version=1, name="The shop", recipients=[recipient])
        await rig.announce("drafts", "brand", saved, "acme")

        async def known() -> bool:
            listed = await rig.notifications.ListRecipients(pb.ListRecipientsRequest(organization_id="acme"))
            return [each.announced for each in listed.recipient_lists] == [True]

        await eventually(known)
        await rig.notifications.SendTestNotification(
            pb.SendTestNotificationRequest(organization_id="acme", email="bob@example.com", brand_id="shop")
        )
        await eventually(lambda: bool(mails(tmp_path)))
        (mail,) = mails(tmp_path).values()
        assert mail["To"] == "Bob <bob@example.com>"


async def test_no_secret_is_repeated_anywhere(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the password of the mail server, nor the secret of a webhook, nor the token of an account."""
    caplog.set_level(logging.DEBUG)
    async with SmtpServer(users={"ann": CANARY}) as smtp, WebhookReceiver() as receiver:
        url = Secret(f"smtp://ann:{CANARY}@{smtp.address}")
        private = f"127.0.0.1:{receiver.port}"
        async with start(mail_url=url, outside_private_hosts=private) as rig:
            token = "canary-0815-token"
            await rig.connect(token=f"sandbox-ok-{token}")
            await listen(rig)
            created = await rig.notifications.CreateSubscription(
                pb.CreateSubscriptionRequest(
                    organization_id="acme", subscription=msg.Subscription(url=receiver.url), request_id="r1"
                )
            )
            smtp.fail(At.RCPT, f"450 4.2.0 {CANARY} said {created.secret}", times=1)
            receiver.answer(500)
            await rig.post_many(1)
            await eventually(lambda: bool(smtp.kept) and len(receiver.posted) > 1, within=30)
            tables = await rig.rows("select tablename from pg_tables where schemaname = 'public'")
            rows = [await rig.rows(f'select t::text from "{each.tablename}" t') for each in tables]  # noqa: S608
            stored = str(rows)
            said = "".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
            sent = "".join(str(kept.data) for kept in smtp.kept) + "".join(str(each) for each in receiver.posted)
            for where in (stored, said, sent):
                assert CANARY not in where
                assert CANARY.encode().hex() not in where
                assert token not in where
                assert created.secret not in where
