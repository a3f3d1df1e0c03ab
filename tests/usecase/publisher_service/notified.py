"""The use cases of notifications on a real database, with a real mail server and a real webhook, for tests."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from email.headerregistry import Address
from typing import Any

from sqlalchemy import Row, text

from publisher_service.adapters.mail.composing import Links
from publisher_service.adapters.mail.mail_url import SmtpPlace
from publisher_service.adapters.mail.post import MailPost
from publisher_service.adapters.mail.smtp import SmtpMailer
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.postgres.notification_lines import Room
from publisher_service.adapters.vault import Vault
from publisher_service.adapters.webhooks import Webhooks
from publisher_service.application.count_notifications import CountNotifications
from publisher_service.application.create_subscription import CreateSubscription
from publisher_service.application.delete_subscription import DeleteSubscription
from publisher_service.application.follow_brands import FollowBrands
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.application.put_recipients import PutRecipients
from publisher_service.application.read_notifications import ReadNotifications
from publisher_service.application.record_notifications import RecordNotifications
from publisher_service.application.retry_delivery import RetryDelivery
from publisher_service.application.rotate_subscription_secret import RotateSubscriptionSecret
from publisher_service.application.send_notifications import SendNotifications
from publisher_service.application.send_test_notification import SendTestNotification
from publisher_service.application.update_subscription import UpdateSubscription
from publisher_service.domain.delivery import Delivery, DeliveryFilter
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.recipients import Mode, Preferences, Recipient, RecipientList, Role
from publisher_service.domain.subscription import Subscription, SubscriptionChange, SubscriptionState
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.run.settings import Secret
from testkit.calls import call
from testkit.clocks import START, FrozenClock
from testkit.database_clocks import FrozenDatabaseClock
from testkit.smtp_server import SmtpServer
from testkit.webhook_receiver import WebhookReceiver

SENDER = Address(display_name="PostFlow", addr_spec="postflow@example.com")
KEYS = [("test", Secret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))]
EACH = Preferences(published=Mode.EACH)
MAX_AGE = timedelta(hours=24)


class Notified:
    """One process at a frozen time, without its engine: a test calls each use case itself."""

    def __init__(self, url: str, smtp: SmtpServer, receiver: WebhookReceiver) -> None:
        self.smtp, self.receiver = smtp, receiver
        self.database = database = Database(url, application="test")
        self.clock, self.system = FrozenDatabaseClock(), FrozenClock()
        self.vault, ids = Vault(KEYS), Uuid7Source()
        self.ledger = RequestLedger(database, self.clock)
        changes = NotificationChanges(self.ledger)
        self.webhooks = Webhooks(Outside(private_hosts=frozenset({receiver.place})), timeout=timedelta(seconds=5))
        self.post = MailPost(
            mailer=SmtpMailer(
                SmtpPlace(host="127.0.0.1", port=smtp.port), helo="example.com", timeout=timedelta(seconds=5)
            ),
            sender=SENDER,
            links=Links(reconnect="https://app.example.com/reconnect", preferences=""),
            timeout=timedelta(seconds=5),
        )
        self.send = self.sender()
        self.put_recipients = PutRecipients(changes)
        self.create_subscription = CreateSubscription(
            changes=changes, ids=ids, vault=self.vault, webhooks=self.webhooks
        )
        self.update_subscription = UpdateSubscription(changes=changes, webhooks=self.webhooks, on_resumed=_nothing)
        self.rotate_secret = RotateSubscriptionSecret(changes=changes, vault=self.vault)
        self.delete_subscription = DeleteSubscription(changes)
        self.retry_delivery = RetryDelivery(changes=changes, on_due=_nothing)
        self.send_test = SendTestNotification(changes=changes, ids=ids, mails_per_hour=60, on_due=_nothing)
        self.read = ReadNotifications(database, is_mail_on=True)
        self.follow_brands = FollowBrands()
        self.counted = CountNotifications(database=database, clock=self.clock, vault=self.vault, is_mail_on=True)

    def sender(self, **changes: Any) -> SendNotifications:
        parts = {
            "database": self.database,
            "clock": self.clock,
            "system": self.system,
            "vault": self.vault,
            "webhooks": self.webhooks,
            "post": self.post,
            "draw": lambda: 0.0,
        }
        return SendNotifications(**{**parts, **changes})

    def pass_time(self, by: timedelta) -> None:
        self.clock.moment += by
        self.system.advance(by)

    async def record(self, *happened: Notification, mails_per_hour: int = 60, vault: Vault | None = None) -> None:
        record = RecordNotifications(
            clock=self.clock,
            vault=vault or self.vault,
            max_age=MAX_AGE,
            mails_per_hour=mails_per_hour,
            on_recorded=_nothing,
        )
        await self.database.run(lambda tx: record(tx, happened, self.clock.moment))

    async def recipients(
        self,
        *people: str,
        brand: str = "",
        preferences: Preferences = EACH,
        organization: str = "acme",
        role: Role = Role.ADMIN,
        zone: str = "UTC",
        name: str = "",
    ) -> RecipientList:
        wanted = RecipientList(
            organization_id=organization,
            brand_id=brand,
            name=name,
            time_zone=zone,
            recipients=tuple(Recipient(email=f"{each}@example.com", name=each, role=role) for each in people),
            preferences=preferences,
        )
        stored: RecipientList = await self.put_recipients(call("PutRecipients"), wanted, "")
        return stored

    async def subscribe(
        self, name: str = "w1", *, organization: str = "acme", request_id: str = "", **fields: Any
    ) -> tuple[Subscription, Secret]:
        wanted = SubscriptionChange(organization_id=organization, id=name, **{"url": self.receiver.url, **fields})
        asked = call("CreateSubscription", organization_id=organization, request_id=request_id)
        created: tuple[Subscription, Secret] = await self.create_subscription(asked, wanted)
        return created

    async def switch(self, state: SubscriptionState, name: str = "w1") -> Subscription:
        change = SubscriptionChange(organization_id="acme", id=name, state=state)
        after: Subscription = await self.update_subscription(call("UpdateSubscription"), change)
        return after

    async def turn(self, *, mail: bool = True, room: Room | None = None, send: SendNotifications | None = None) -> int:
        """Takes and sends the turns that are due; returns how many there were."""
        send = send or self.send
        turns = await send.take(room or Room(mail=mail, quick=10, slow=10, most=4))
        for each in turns:
            await send(each)
        return len(turns)

    async def all_sent(self) -> None:
        """Sends all that is due now."""
        for mail in (True, False):
            while await self.turn(mail=mail):
                pass

    async def deliveries(self, organization: str = "acme", **fields: Any) -> list[Delivery]:
        """Returns the deliveries of an organization, oldest first."""
        wanted = DeliveryFilter(organization_id=organization, **fields)
        found = await self.read.deliveries(wanted, before=None, limit=1000)
        return [each for each, _ in reversed(found)]

    async def states(self, organization: str = "acme") -> list[str]:
        return sorted(each.state for each in await self.deliveries(organization))

    async def subscription(self, name: str = "w1") -> Subscription:
        return await self.read.subscription("acme", name)

    def mailed(self) -> list[str]:
        """Returns who got mails, in order."""
        return [kept.recipients[0].partition("@")[0] for kept in self.smtp.kept]

    async def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        async with self.database.read() as connection:
            return list(await connection.execute(text(statement), values))

    async def write(self, statement: str, **values: object) -> None:
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(statement), values)


async def notified(url: str, exits: AsyncExitStack) -> Notified:
    smtp = await exits.enter_async_context(SmtpServer())
    receiver = await exits.enter_async_context(WebhookReceiver())
    found = Notified(url, smtp, receiver)
    exits.push_async_callback(found.database.dispose)
    return found


def published(job: str = "j1", **fields: Any) -> Notification:
    return a_post(NotificationKind.POST_PUBLISHED, job, **fields)


def failed(job: str = "j1", **fields: Any) -> Notification:
    return a_post(NotificationKind.POST_FAILED, job, **fields)


def a_post(
    kind: NotificationKind,
    job: str,
    *,
    run: int = 1,
    brand: str = "",
    account: str = "page",
    organization: str = "acme",
    ago: timedelta = timedelta(0),
    **facts: str | int,
) -> Notification:
    return Notification(
        organization_id=organization,
        kind=kind,
        subject_id=job,
        occasion=str(run),
        time=START - ago,
        social_account_id=account,
        brand_id=brand,
        facts={"post_job_id": job, "draft_id": f"d-{job}", "channel": "facebook", **facts},
    )


def disconnected(account: str = "page", *, at: str = "t1", **facts: str) -> Notification:
    return Notification(
        organization_id="acme",
        kind=NotificationKind.ACCOUNT_DISCONNECTED,
        subject_id=account,
        occasion=at,
        time=START,
        social_account_id=account,
        facts={"social_account_id": account, "reason": "CREDENTIALS_REFUSED", **facts},
    )


def shuffled(happened: Sequence[Notification]) -> list[Notification]:
    """Returns the same facts as another consumer may see them: doubled, and the other way round."""
    return [replace(each) for each in reversed([*happened, *happened])]


def _nothing() -> None:
    pass
