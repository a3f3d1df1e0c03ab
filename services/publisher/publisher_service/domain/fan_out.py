"""Fans notifications out: who gets each of them, at once or with others in a digest."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from publisher_service.domain.delivery import MAIL, Delivery, DeliveryState, delivery_of, digest_id
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.recipients import Addressed, Lists, Mode, addressed, next_digest
from publisher_service.domain.subscription import Subscription, wants

MOST_ITEMS: Final = 100
"""The notifications that a digest shows; of the others it says how many there are."""
HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Recipients and webhooks that may want some notifications."""

    lists: Lists = field(default_factory=dict)
    subscriptions: Mapping[str, Sequence[Subscription]] = field(default_factory=dict)
    # The brands for which an account has posted, by organization and account.
    brands: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    def mailed_to(self, notification: Notification) -> list[Addressed]:
        return addressed(notification, self.lists, self.brands.get(notification.account_key, ()))

    def posted_to(self, notification: Notification) -> list[Subscription]:
        brands = self.brands.get(notification.account_key, ())
        of_organization = self.subscriptions.get(notification.organization_id, ())
        return [each for each in of_organization if wants(each, notification, brands)]

    def has(self, notification: Notification) -> bool:
        return bool(self.mailed_to(notification) or self.posted_to(notification))


@dataclass(slots=True, kw_only=True)
class FanOut:
    """Deliveries to store, what their digests join, and how many mails each organization gets one by one."""

    deliveries: list[Delivery] = field(default_factory=list)
    # By the digest, in the order of the notifications.
    items: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    mails: Counter[str] = field(default_factory=Counter)
    # Mails that join a digest because their organization has had too many.
    joined: int = 0


def fan_out(
    notifications: Sequence[Notification],
    audience: Audience,
    *,
    room: Mapping[str, int],
    now: datetime,
    max_age: timedelta,
) -> FanOut:
    """Returns the deliveries of new notifications. `room`: the mails that each organization may still get this hour.

    Mails beyond that join a digest at the end of the hour, so that a thousand failures are no thousand mails.
    """
    found = FanOut()
    digests: dict[tuple[str, str], Delivery] = {}
    for notification in notifications:
        expire_time = notification.time + max_age
        for each in audience.mailed_to(notification):
            due_time = _digest_time(each, notification, found, room, now)
            if due_time is None:
                mail = delivery_of(
                    notification,
                    receiver=MAIL,
                    email=each.recipient.email,
                    name=each.recipient.name,
                    brand_id=each.list.brand_id,
                    now=now,
                )
                found.deliveries.append(replace(mail, expire_time=expire_time))
                found.mails[notification.organization_id] += 1
            else:
                digest = _digest(notification.organization_id, each, due_time, now, max_age)
                digests.setdefault(digest.key, digest)
                found.items[digest.key].append(notification.id)
        for subscription in audience.posted_to(notification):
            call = delivery_of(notification, receiver=subscription.id, now=now)
            state = DeliveryState.PAUSED if subscription.is_paused else DeliveryState.WAITING
            found.deliveries.append(replace(call, state=state, expire_time=expire_time))
    found.deliveries += [replace(each, items=len(found.items[key])) for key, each in digests.items()]
    return found


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _digest_time(
    each: Addressed, notification: Notification, found: FanOut, room: Mapping[str, int], now: datetime
) -> datetime | None:
    """Returns when it is mailed together with others; None: at once."""
    if each.mode is Mode.DIGEST:
        return next_digest(each.list, now=now)
    organization = notification.organization_id
    if found.mails[organization] < room.get(organization, 0):
        return None
    found.joined += 1
    return hour_of(now) + HOUR


def _digest(organization_id: str, each: Addressed, due_time: datetime, now: datetime, max_age: timedelta) -> Delivery:
    return Delivery(
        organization_id=organization_id,
        id=digest_id(organization_id, each.recipient.email, due_time),
        notification_id="",
        kind=NotificationKind.DIGEST,
        receiver=MAIL,
        email=each.recipient.email,
        name=each.recipient.name,
        brand_id=each.list.brand_id,
        due_time=due_time,
        expire_time=due_time + max_age,
        create_time=now,
        update_time=now,
    )
