"""Sends what is due: a turn of a line is taken, committed, sent one by one, and each outcome recorded.

At least once: what a process has sent and not recorded is sent again after the lease, under the same id.

A supervised edge: a defect while a delivery is written or sent ends that delivery, so that it cannot hold its line.
"""

import logging
import random
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from opentelemetry import metrics

from publisher_service.adapters.mail.composing import Letter, compose
from publisher_service.adapters.mail.post import MailPost
from publisher_service.adapters.postgres.deliveries import (
    due_deliveries,
    lock_delivery,
    notifications_of,
    pause_deliveries,
    save_delivery,
)
from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.notification_lines import (
    ClaimedLine,
    Room,
    claim_receivers,
    free_receiver,
    lock_receiver,
    note_failures,
    rest_receiver,
)
from publisher_service.adapters.postgres.recipient_lists import find_recipient_lists
from publisher_service.adapters.postgres.subscriptions import (
    SealedSecrets,
    find_subscriptions,
    lock_subscription,
    save_subscription,
)
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.adapters.webhook_secrets import open_secret
from publisher_service.adapters.webhooks import Webhooks
from publisher_service.application.former_recipients import to_former_recipients
from publisher_service.domain.delivery import (
    MAIL,
    Accepted,
    Delivery,
    DeliveryState,
    NotAccepted,
    Result,
    is_stale,
    pause_of,
    settled,
    skipped,
)
from publisher_service.domain.notification import CHOSEN, Notification, NotificationKind
from publisher_service.domain.recipients import Lists
from publisher_service.domain.subscription import Subscription, attempted
from publisher_service.wire.webhook_payloads import webhook_payload
from servicekit.clock import Clock
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.run.settings import Secret
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)

_TAKEN = declare("publisher.notify.taken")
_SENT = declare("publisher.notify.sent")
_RECORDED = declare("publisher.notify.recorded")

# A turn is short, so that others get theirs soon.
_MOST_OF_A_TURN = 10
SLOW_AFTER = timedelta(seconds=1)
"""A receiver that takes longer for an answer gets its turns among others like it."""

_OUTCOMES = ("DELIVERED", "RETRIED", "FAILED", "SKIPPED")
_sent = from_zero(
    _meter.create_counter(
        "postflow.notifications.deliveries", description="Attempts at deliveries, by channel, kind and outcome"
    ),
    *(
        {"channel": channel, "kind": kind, "outcome": outcome}
        for channel in ("EMAIL", "WEBHOOK")
        for kind in (*CHOSEN, *((NotificationKind.DIGEST,) if channel == "EMAIL" else ()))
        for outcome in _OUTCOMES
    ),
)
_defects = from_zero(
    _meter.create_counter(
        "postflow.notifications.defects", description="Deliveries that ended because writing or sending them raised"
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Deliveries that a line sends next, in this process alone until the lease ends."""

    line: ClaimedLine
    deliveries: Sequence[Delivery]
    # What each delivery is about, in their order, and the lists of their recipients.
    notifications: Sequence[Sequence[Notification]] = ()
    lists: Lists = field(default_factory=dict)
    subscription: Subscription | None = None
    secrets: SealedSecrets | None = None
    # Monotonic time of this process.
    taken: float

    @property
    def organization_id(self) -> str:
        return self.line.organization_id


class SendNotifications:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        system: Clock,
        vault: Vault,
        webhooks: Webhooks,
        post: MailPost | None,
        margin: timedelta = timedelta(seconds=5),
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Sends no mail if there is no `post`; `margin` is how much longer a lease lasts than two attempts."""
        self._database = database
        self._clock = clock
        self._system = system
        self._vault = vault
        self._webhooks = webhooks
        self._post = post
        self._draw = draw
        # No attempt begins later in a turn, and one may last as long.
        self._longest_turn = max(webhooks.timeout, post.timeout if post else timedelta(0))
        self._lease = 2 * self._longest_turn + margin

    @property
    def is_mail_on(self) -> bool:
        return self._post is not None

    async def take(self, room: Room) -> list[Turn]:
        """Takes the turns of due lines, as far as there is room."""
        turns = await self._database.run(partial(self._take, room))
        if turns:
            await failpoint(_TAKEN)
        return turns

    async def _take(self, room: Room, tx: Transaction) -> list[Turn]:
        taken = self._system.monotonic()
        now = await self._clock.now(tx)
        lines = await claim_receivers(tx.connection, room, now=now, lease_end=now + self._lease)
        if not lines:
            return []
        # A separate statement: it sees all that was stored under the locks of the lines.
        found = await due_deliveries(tx.connection, [line.key for line in lines], most=_MOST_OF_A_TURN, now=now)
        webhooks = await find_subscriptions(tx.connection, [line.key for line in lines if line.receiver])
        due = [each for deliveries in found.values() for each in deliveries]
        lists = await find_recipient_lists(tx.connection, {each.list_key for each in due if each.receiver == MAIL})
        unwanted = await to_former_recipients(tx, due, lists)
        turns: list[Turn] = []
        for line in lines:
            subscription, secrets = webhooks.get(line.key, (None, None))
            if line.receiver and (subscription is None or subscription.is_paused):
                await pause_deliveries(tx.connection, line.key, now=now)
                await rest_receiver(tx.connection, line.key)
            elif deliveries := await self._wanted(tx, found.get(line.key, []), unwanted, now):
                turn = Turn(line=line, deliveries=deliveries, subscription=subscription, secrets=secrets, taken=taken)
                turns.append(turn)
            else:
                await free_receiver(tx.connection, line.key, slow=False, not_before=None)
        return await _with_contents(tx, turns, lists)

    async def _wanted(
        self, tx: Transaction, deliveries: Sequence[Delivery], unwanted: AbstractSet[Key], now: datetime
    ) -> list[Delivery]:
        """Skips what is unwanted, and what has become too old before its first attempt; returns the others."""
        wanted: list[Delivery] = []
        for each in deliveries:
            reason = "TOO_OLD" if is_stale(each, now=now) else "NOT_A_RECIPIENT" if each.key in unwanted else ""
            if reason:
                await save_delivery(tx.connection, skipped(each, reason, now=now))
                tx.after_commit(partial(_count, each, "SKIPPED"))
            else:
                wanted.append(each)
        return wanted

    async def __call__(self, turn: Turn) -> None:
        """Sends the deliveries of a turn one after the other, as long as its receiver answers quickly."""
        is_slow = False
        for delivery, notifications in zip(turn.deliveries, turn.notifications, strict=True):
            began = self._system.monotonic()
            if began - turn.taken > self._longest_turn.total_seconds():
                break
            result = await self._send(turn, delivery, notifications)
            await failpoint(_SENT)
            is_slow = self._system.monotonic() - began > SLOW_AFTER.total_seconds()
            is_well = not is_slow and (isinstance(result, Accepted) or result.is_final)
            is_last = not is_well or delivery is turn.deliveries[-1]
            await self._record(turn, delivery, result, is_slow=is_slow, is_last=is_last)
            if is_last:
                return
        await self._end(turn, is_slow=is_slow)

    async def _send(self, turn: Turn, delivery: Delivery, notifications: Sequence[Notification]) -> Result:
        try:
            return await self._attempt(turn, delivery, notifications)
        except Exception as error:  # noqa: BLE001 - a defect of one delivery must not hold those behind it
            return _defect(delivery, error)

    async def _attempt(self, turn: Turn, delivery: Delivery, notifications: Sequence[Notification]) -> Result:
        if turn.subscription is not None:
            return await self._call(turn, turn.subscription, delivery, notifications)
        if not notifications:
            return NotAccepted(reason="NOTHING_LEFT", message="what it was about is no longer kept", is_final=True)
        assert self._post is not None, "no mail is taken while it is off"
        known = turn.lists.get(delivery.list_key)
        letter = Letter(
            delivery=delivery,
            notifications=notifications,
            brand_name="" if known is None else known.name,
            time_zone="UTC" if known is None else known.time_zone,
        )
        mail = compose(letter, sender=self._post.sender, links=self._post.links, now=self._system.now())
        return await self._post.mailer.send(mail)

    async def _call(
        self, turn: Turn, subscription: Subscription, delivery: Delivery, notifications: Sequence[Notification]
    ) -> Result:
        if not notifications:
            return NotAccepted(reason="NOTHING_LEFT", message="what it was about is no longer kept", is_final=True)
        assert turn.secrets is not None
        try:
            secrets = self._secrets(turn.secrets)
        except CredentialsUnreadable:
            return NotAccepted(reason="SECRET_UNREADABLE", message="no key of the process opens the webhook's secret")
        return await self._webhooks.post(
            delivery.organization_id,
            subscription.url,
            delivery.id,
            webhook_payload(notifications[0]),
            secrets,
            at=self._system.now(),
        )

    def _secrets(self, stored: SealedSecrets) -> list[Secret]:
        """Returns the secrets that sign now: the former one until its end."""
        open_one = partial(open_secret, self._vault, organization_id=stored.organization_id, subscription_id=stored.id)
        secrets = [open_one(stored.secret)]
        end = stored.former_secret_end_time
        if stored.former_secret is not None and end is not None and self._system.now() < end:
            secrets.append(open_one(stored.former_secret))
        return secrets

    async def _record(self, turn: Turn, delivery: Delivery, result: Result, *, is_slow: bool, is_last: bool) -> None:
        await self._database.run(
            lambda tx: self._recorded(tx, turn, delivery, result, is_slow=is_slow, is_last=is_last)
        )
        await failpoint(_RECORDED)

    async def _recorded(
        self, tx: Transaction, turn: Turn, delivery: Delivery, result: Result, *, is_slow: bool, is_last: bool
    ) -> None:
        now = await self._clock.now(tx)
        key = turn.line.key
        subscription = await lock_subscription(tx.connection, *key) if turn.line.receiver else None
        line = await lock_receiver(tx.connection, key)
        if line is not None and line[0] == turn.line.fence:
            failures = _failures_after(result, line[1])
            await self._settle(tx, subscription, delivery, result, now)
            await note_failures(tx.connection, key, failures)
            if is_last:
                pause = pause_of(result, failures)
                not_before = None if pause is None else now + pause
                await free_receiver(tx.connection, key, slow=is_slow, not_before=not_before)
        elif isinstance(result, Accepted):
            # Another process has the line by now: that this one was accepted is true no less.
            await self._settle(tx, subscription, delivery, result, now)

    async def _settle(
        self, tx: Transaction, subscription: Subscription | None, delivery: Delivery, result: Result, now: datetime
    ) -> None:
        known = await lock_delivery(tx.connection, *delivery.key)
        if known is None or known.state is DeliveryState.DELIVERED:
            return
        after = settled(known, result, now=now, draw=self._draw())
        await save_delivery(tx.connection, after)
        tx.after_commit(partial(_report, after, result))
        if subscription is not None:
            is_given_up = after.state is DeliveryState.FAILED
            await self._keep_health(tx, subscription, result, is_given_up=is_given_up, now=now)

    async def _keep_health(
        self, tx: Transaction, known: Subscription, result: Result, *, is_given_up: bool, now: datetime
    ) -> None:
        after = attempted(known, result, is_given_up=is_given_up, now=now)
        await save_subscription(tx.connection, after)
        if after.is_paused and not known.is_paused:
            await pause_deliveries(tx.connection, after.key, now=now)
            tx.after_commit(partial(_report_paused, after))

    async def _end(self, turn: Turn, *, is_slow: bool) -> None:
        """Ends a turn in which not all was sent."""
        await self._database.run(partial(self._ended, turn, is_slow))
        await failpoint(_RECORDED)

    async def _ended(self, turn: Turn, is_slow: bool, tx: Transaction) -> None:
        line = await lock_receiver(tx.connection, turn.line.key)
        if line is not None and line[0] == turn.line.fence:
            await free_receiver(tx.connection, turn.line.key, slow=is_slow, not_before=None)


async def _with_contents(tx: Transaction, turns: Sequence[Turn], lists: Lists) -> list[Turn]:
    deliveries = [each for turn in turns for each in turn.deliveries]
    about = await notifications_of(tx.connection, deliveries)
    return [replace(turn, notifications=[about[each.key] for each in turn.deliveries], lists=lists) for turn in turns]


def _failures_after(result: Result, before: int) -> int:
    """Returns the failures in a row of a line. A recipient that is refused for good is none of them."""
    if isinstance(result, Accepted):
        return 0
    return before if result.is_final else before + 1


def _defect(delivery: Delivery, error: Exception) -> Result:
    _defects.add(1)
    _log.error("delivery %s of %s cannot be sent", delivery.id, delivery.organization_id, exc_info=error)
    return NotAccepted(reason="DEFECT", message="a defect of PostFlow: its log says more", is_final=True)


def _report(delivery: Delivery, result: Result) -> None:
    """Counts an attempt and logs a failed one, without address, URL or text."""
    if isinstance(result, Accepted):
        _count(delivery, "DELIVERED")
        return
    is_over = delivery.state is DeliveryState.FAILED
    _count(delivery, "FAILED" if is_over else "RETRIED")
    fields = {
        "organization_id": delivery.organization_id,
        "delivery_id": delivery.id,
        "subscription_id": delivery.receiver,
        "kind": str(delivery.kind),
        "attempt": delivery.attempts,
        "reason": result.reason,
    }
    _log.log(logging.WARNING if is_over else logging.INFO, "notification not delivered", extra=fields)


def _report_paused(subscription: Subscription) -> None:
    fields = {
        "organization_id": subscription.organization_id,
        "subscription_id": subscription.id,
        "reason": str(subscription.state_reason),
    }
    _log.warning("webhook paused", extra=fields)


def _count(delivery: Delivery, outcome: str) -> None:
    _sent.add(1, {"channel": delivery.channel, "kind": delivery.kind, "outcome": outcome})
