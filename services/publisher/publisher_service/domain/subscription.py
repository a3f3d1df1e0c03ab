"""Subscriptions: webhooks that are called about what happens, and paused when they no longer answer."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from publisher_service.domain.delivery import Accepted, NotAccepted, Result
from publisher_service.domain.notification import ABOUT_ACCOUNTS, Notification, NotificationKind
from servicekit.faults import Conflict, NotFound

MOST_SUBSCRIPTIONS: Final = 20
MOST_EXHAUSTED: Final = 5
"""This many deliveries in a row that were given up pause a webhook."""
LONGEST_FAILURE: Final = timedelta(days=3)
"""A webhook that accepts nothing for so long is paused."""
DEFAULT_OVERLAP: Final = timedelta(days=1)


class SubscriptionState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"


class PauseReason(StrEnum):
    NONE = ""
    BY_REQUEST = "BY_REQUEST"
    FAILURES = "FAILURES"
    GONE = "GONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    organization_id: str
    id: str
    url: str
    # Both empty: all.
    kinds: tuple[NotificationKind, ...] = ()
    brand_ids: tuple[str, ...] = ()
    description: str = ""
    state: SubscriptionState = SubscriptionState.ACTIVE
    state_reason: PauseReason = PauseReason.NONE
    # Attempts since the last success, and deliveries given up since then.
    failures: int = 0
    exhausted: int = 0
    failing_since: datetime | None = None
    last_success_time: datetime | None = None
    former_secret_end_time: datetime | None = None
    # Counts what people set.
    version: int = 1
    create_time: datetime
    update_time: datetime

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.id

    @property
    def etag(self) -> str:
        return str(self.version)

    @property
    def is_paused(self) -> bool:
        return self.state is SubscriptionState.PAUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionChange:
    """A request to add or change a webhook: None leaves a field as it is, and an empty etag is no precondition."""

    organization_id: str
    id: str
    url: str | None = None
    kinds: tuple[NotificationKind, ...] | None = None
    brand_ids: tuple[str, ...] | None = None
    description: str | None = None
    state: SubscriptionState | None = None
    etag: str = ""


def wants(subscription: Subscription, notification: Notification, brands: Collection[str]) -> bool:
    """Returns whether the webhook gets it. `brands` are those for which its account has posted."""
    if subscription.kinds and notification.kind not in subscription.kinds:
        return False
    if not subscription.brand_ids:
        return True
    own = brands if notification.kind in ABOUT_ACCOUNTS else (notification.brand_id,)
    return not set(subscription.brand_ids).isdisjoint(own)


def require_subscription(subscription: Subscription | None, subscription_id: str, *, etag: str = "") -> Subscription:
    """Returns the webhook; raises SUBSCRIPTION_NOT_FOUND or ETAG_MISMATCH."""
    names = {"subscription_id": subscription_id}
    if subscription is None:
        raise NotFound("SUBSCRIPTION_NOT_FOUND", "there is no such webhook", metadata=names)
    if etag and etag != subscription.etag:
        raise Conflict(
            "ETAG_MISMATCH",
            "the webhook has been changed since it was read",
            metadata={**names, "etag": subscription.etag},
        )
    return subscription


def created(wanted: SubscriptionChange, subscription_id: str, *, now: datetime) -> Subscription:
    blank = Subscription(
        organization_id=wanted.organization_id, id=subscription_id, url="", create_time=now, update_time=now
    )
    return replace(changed(blank, wanted, now=now), version=1)


def changed(known: Subscription, change: SubscriptionChange, *, now: datetime) -> Subscription:
    """Returns the webhook as it is to be set. A new state forgets the failures: it begins again."""
    after = replace(
        known,
        url=known.url if change.url is None else change.url,
        kinds=known.kinds if change.kinds is None else change.kinds,
        brand_ids=known.brand_ids if change.brand_ids is None else change.brand_ids,
        description=known.description if change.description is None else change.description,
    )
    if change.state is not None and change.state is not known.state:
        is_paused = change.state is SubscriptionState.PAUSED
        after = replace(
            after,
            state=change.state,
            state_reason=PauseReason.BY_REQUEST if is_paused else PauseReason.NONE,
            failures=0,
            exhausted=0,
            failing_since=None,
        )
    return known if after == known else replace(after, version=known.version + 1, update_time=now)


def attempted(known: Subscription, result: Result, *, is_given_up: bool, now: datetime) -> Subscription:
    """Returns the webhook after an attempt; `is_given_up`: it was the last one of its delivery."""
    if isinstance(result, Accepted):
        return replace(known, failures=0, exhausted=0, failing_since=None, last_success_time=now, update_time=now)
    after = replace(
        known,
        failures=known.failures + 1,
        exhausted=known.exhausted + is_given_up,
        failing_since=known.failing_since or now,
        update_time=now,
    )
    if known.is_paused or (reason := _pause_reason(after, result, now)) is PauseReason.NONE:
        return after
    return replace(after, state=SubscriptionState.PAUSED, state_reason=reason)


def _pause_reason(after: Subscription, result: NotAccepted, now: datetime) -> PauseReason:
    if result.is_gone:
        return PauseReason.GONE
    has_failed_for_long = after.failing_since is not None and now - after.failing_since >= LONGEST_FAILURE
    if after.exhausted >= MOST_EXHAUSTED or has_failed_for_long:
        return PauseReason.FAILURES
    return PauseReason.NONE
