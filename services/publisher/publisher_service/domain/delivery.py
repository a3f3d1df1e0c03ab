"""A delivery: one notification, or a digest, on its way to one address or webhook, and when it is tried again."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from publisher_service.domain.derived_ids import derived_id
from publisher_service.domain.notification import Notification, NotificationKind, shown_error
from servicekit.faults import Refused

MAIL: Final = ""
"""The receiver of all e-mails of an organization. Any other receiver is a webhook's id."""

# Standard Webhooks: ten attempts, the first of them at once, within about three days.
WAITS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
MOST_ATTEMPTS: Final = len(WAITS) + 1
# Deliveries that failed together do not come again together.
_JITTER: Final = 0.1
_LONGEST_WAIT: Final = timedelta(hours=24)
_FIRST_PAUSE: Final = timedelta(seconds=5)
_LONGEST_PAUSE: Final = timedelta(minutes=5)
_THROTTLED: Final = timedelta(minutes=1)


class DeliveryState(StrEnum):
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    # Only shown: it waits, and e-mail is switched off.
    OFF = "OFF"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELED = "CANCELED"


OPEN: Final = frozenset({DeliveryState.WAITING, DeliveryState.PAUSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    organization_id: str
    id: str
    # Empty for a digest.
    notification_id: str
    kind: NotificationKind
    receiver: str
    email: str = ""
    # The name of the recipient.
    name: str = ""
    # The list of the recipient.
    brand_id: str = ""
    state: DeliveryState = DeliveryState.WAITING
    due_time: datetime
    # Without an attempt until then it is skipped; None: never.
    expire_time: datetime | None = None
    attempts: int = 0
    # Of a digest: how many notifications it joins.
    items: int = 0
    error_reason: str = ""
    error_message: str = ""
    create_time: datetime
    update_time: datetime
    end_time: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.id

    @property
    def list_key(self) -> tuple[str, str]:
        return self.organization_id, self.brand_id

    @property
    def channel(self) -> str:
        """Returns the way it goes, as metrics and logs name it."""
        return "EMAIL" if self.receiver == MAIL else "WEBHOOK"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Selects deliveries of an organization; None and empty fields admit all."""

    organization_id: str
    receiver: str | None = None
    states: tuple[DeliveryState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A request to send a test: to a webhook, or to an address on the list of a brand."""

    subscription_id: str = ""
    email: str = ""
    brand_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The other side has taken it over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAccepted:
    """Nothing proves that it was delivered."""

    reason: str
    message: str = ""
    # Never again, to this recipient.
    is_final: bool = False
    # The receiver is no more (410).
    is_gone: bool = False
    # The receiver asks for fewer messages.
    is_throttled: bool = False
    retry_after: timedelta | None = None


Result = Accepted | NotAccepted


def delivery_id(organization_id: str, notification_id: str, receiver: str, email: str = "") -> str:
    return derived_id(organization_id, notification_id, receiver, email.lower())


def digest_id(organization_id: str, email: str, due_time: datetime) -> str:
    return derived_id(organization_id, NotificationKind.DIGEST, email.lower(), due_time.isoformat())


def delivery_of(
    notification: Notification, *, receiver: str, email: str = "", name: str = "", brand_id: str = "", now: datetime
) -> Delivery:
    return Delivery(
        organization_id=notification.organization_id,
        id=delivery_id(notification.organization_id, notification.id, receiver, email),
        notification_id=notification.id,
        kind=notification.kind,
        receiver=receiver,
        email=email,
        name=name,
        brand_id=brand_id,
        due_time=now,
        create_time=now,
        update_time=now,
    )


def is_stale(delivery: Delivery, *, now: datetime) -> bool:
    return not delivery.attempts and delivery.expire_time is not None and delivery.expire_time < now


def skipped(delivery: Delivery, reason: str, *, now: datetime) -> Delivery:
    return _ended(delivery, DeliveryState.SKIPPED, now, error_reason=reason, error_message="")


def settled(delivery: Delivery, result: Result, *, now: datetime, draw: float) -> Delivery:
    """Returns the delivery after an attempt; `draw` is 0 to 1, for the jitter."""
    after = replace(delivery, attempts=delivery.attempts + 1, update_time=now)
    if isinstance(result, Accepted):
        return _ended(after, DeliveryState.DELIVERED, now, error_reason="", error_message="")
    after = replace(after, error_reason=result.reason, error_message=shown_error(result.message))
    if result.is_final or result.is_gone or after.attempts >= MOST_ATTEMPTS:
        return _ended(after, DeliveryState.FAILED, now)
    wait = WAITS[after.attempts - 1] * (1 + _JITTER * draw)
    return replace(after, due_time=now + max(wait, min(result.retry_after or wait, _LONGEST_WAIT)))


def pause_of(result: Result, failures: int) -> timedelta | None:
    """Returns how long the receiver is left alone after so many failures in a row, the last one included.

    A refused recipient says nothing about those behind it.
    """
    if isinstance(result, Accepted) or result.is_final:
        return None
    doublings: int = 2 ** min(failures - 1, 10)
    pause = min(_FIRST_PAUSE * doublings, _LONGEST_PAUSE)
    if result.is_throttled:
        pause = max(pause, _THROTTLED)
    return max(pause, min(result.retry_after or pause, _LONGEST_WAIT))


def tried_again(delivery: Delivery, *, is_deleted: bool, is_paused: bool, now: datetime) -> Delivery:
    """Returns the delivery as a person sends it again, with all its attempts. Raises the reasons of RetryDelivery."""
    names = {"delivery_id": delivery.id}
    if delivery.state is DeliveryState.DELIVERED:
        raise Refused("DELIVERY_DELIVERED", "the delivery was accepted", metadata=names)
    if delivery.state is DeliveryState.CANCELED or is_deleted:
        raise Refused("DELIVERY_CANCELED", "the webhook of the delivery was deleted", metadata=names)
    if is_paused:
        raise Refused("SUBSCRIPTION_PAUSED", "the webhook is paused: resume it first", metadata=names)
    return replace(
        delivery,
        state=DeliveryState.WAITING,
        attempts=0,
        due_time=now,
        expire_time=None,
        update_time=now,
        end_time=None,
    )


def _ended(delivery: Delivery, state: DeliveryState, now: datetime, **changes: str) -> Delivery:
    return replace(delivery, state=state, update_time=now, end_time=now, **changes)  # type: ignore[arg-type]
