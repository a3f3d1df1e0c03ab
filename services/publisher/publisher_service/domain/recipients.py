"""Lists of those who get e-mails, by brand, and what each list wants to hear."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Final

from civil.days import local_day
from civil.wall_clock import resolve
from civil.zones import Zone, find_zone, stored_zone
from publisher_service.domain.notification import ABOUT_ACCOUNTS, Notification, NotificationKind
from servicekit.faults import Conflict, Refused

DEFAULT_BRAND: Final = ""
"""Stands for the default list of an organization."""
MOST_RECIPIENTS: Final = 50
DEFAULT_DIGEST_HOUR: Final = 8

# What RFC 5321 admits without quotes. Nothing in it begins a header, an argument, another address or an encoded word.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_EMAIL = re.compile(
    rf"(?=.{{3,254}}\Z)(?!.*=\?){_ATOM}(\.{_ATOM})*@([A-Za-z0-9]([A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]"
)
_LONGEST_LOCAL: Final = 64
_DAY = timedelta(days=1)


class Role(StrEnum):
    ADMIN = "ADMIN"
    EDITOR = "EDITOR"


class Mode(StrEnum):
    """The way in which a kind is mailed."""

    EACH = "EACH"
    DIGEST = "DIGEST"
    NONE = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    email: str
    name: str = ""
    role: Role = Role.ADMIN

    @property
    def key(self) -> str:
        """Returns the address as it is compared. Hosts ignore the case of letters, and so do all providers of mail."""
        return self.email.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    # Empty: all.
    kinds: tuple[NotificationKind, ...] = ()
    published: Mode = Mode.DIGEST
    digest_hour: int = DEFAULT_DIGEST_HOUR

    def mode(self, kind: NotificationKind) -> Mode:
        if self.kinds and kind not in self.kinds:
            return Mode.NONE
        return self.published if kind is NotificationKind.POST_PUBLISHED else Mode.EACH


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientList:
    organization_id: str
    brand_id: str
    name: str = ""
    time_zone: str = "UTC"
    recipients: tuple[Recipient, ...] = ()
    preferences: Preferences = field(default_factory=Preferences)
    # The version of the brand that Drafts has announced; 0 if it has announced none.
    announced_version: int = 0
    version: int = 1
    # None until it is stored.
    update_time: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.brand_id

    @property
    def etag(self) -> str:
        return str(self.version)


Lists = Mapping[tuple[str, str], RecipientList]


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """A recipient of a notification, and the list that says how it gets it."""

    recipient: Recipient
    list: RecipientList
    mode: Mode


def is_email(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None and len(text.partition("@")[0]) <= _LONGEST_LOCAL


def put(known: RecipientList | None, wanted: RecipientList, *, etag: str) -> RecipientList:
    """Returns the list as it is to be stored. Raises ETAG_MISMATCH or BRAND_OF_DRAFTS."""
    if etag and (known is None or etag != known.etag):
        current = {} if known is None else {"etag": known.etag}
        raise Conflict(
            "ETAG_MISMATCH",
            "the recipients have been changed since they were read",
            metadata={"brand_id": wanted.brand_id, **current},
        )
    if known is None:
        return wanted
    if known.announced_version and _of_drafts(known) != _of_drafts(wanted):
        raise Refused(
            "BRAND_OF_DRAFTS",
            "Drafts says what the brand is called and who its recipients are: change the brand there",
            metadata={"brand_id": wanted.brand_id},
        )
    return replace(wanted, announced_version=known.announced_version, version=known.version + 1)


def announced(known: RecipientList | None, brand: RecipientList) -> RecipientList | None:
    """Returns the list of a brand that Drafts has announced; None if that is not newer. Preferences stay."""
    if known is None:
        return brand
    if brand.announced_version <= known.announced_version:
        return None
    return replace(brand, preferences=known.preferences, version=known.version + 1)


def addressed(notification: Notification, lists: Lists, brands: Sequence[str]) -> list[Addressed]:
    """Returns who gets a mail about it, each address once. `brands` are those for which its account has posted.

    A post concerns its brand; the default list if it has none, or that has no recipients. An account concerns the
    default list, and the ADMINs of its brands.
    """
    organization = notification.organization_id
    found: dict[str, Addressed] = {}
    default = lists.get((organization, DEFAULT_BRAND))
    if notification.kind in ABOUT_ACCOUNTS:
        _add(found, notification.kind, default, tuple(Role))
        for brand in brands:
            _add(found, notification.kind, lists.get((organization, brand)), (Role.ADMIN,))
    else:
        own = lists.get((organization, notification.brand_id))
        _add(found, notification.kind, own if own is not None and own.recipients else default, tuple(Role))
    return list(found.values())


def concerned(notification: Notification, brands: Sequence[str]) -> set[tuple[str, str]]:
    """Returns the keys of the lists whose recipients may get a mail about it."""
    others = brands if notification.kind in ABOUT_ACCOUNTS else (notification.brand_id,)
    return {(notification.organization_id, brand) for brand in (DEFAULT_BRAND, *others)}


def is_on(email: str, lists: Lists, keys: Iterable[tuple[str, str]]) -> bool:
    """Returns whether one of those lists has the address, in any role and with any preferences."""
    found = (recipients for key in keys if (recipients := lists.get(key)) is not None)
    return any(email.lower() == each.key for recipients in found for each in recipients.recipients)


def next_digest(recipients: RecipientList, *, now: datetime) -> datetime:
    """Returns the next time of the list's digest: its hour by the clocks of its zone, also when they jump."""
    zone = _zone(recipients.time_zone)
    day = local_day(now, zone)
    for number in range(4):
        nominal = datetime.combine(day + number * _DAY, time(recipients.preferences.digest_hour))
        resolved = resolve(nominal, zone)
        if resolved is not None and resolved.instant > now:
            return resolved.instant
    raise AssertionError("a zone that skips three days in a row")


def local_time(moment: datetime, time_zone: str) -> str:
    """Returns the time as people in the zone write it."""
    zone = _zone(time_zone)
    return f"{(moment + zone.offset_at(moment)):%Y-%m-%d %H:%M} ({zone.name})"


def _zone(name: str) -> Zone:
    """Returns the zone; UTC for one that time zone data has dropped since it was stored."""
    zone = stored_zone(name)
    return zone if zone.is_known else find_zone("UTC")


def _add(
    found: dict[str, Addressed], kind: NotificationKind, recipients: RecipientList | None, roles: Sequence[Role]
) -> None:
    if recipients is None or (mode := recipients.preferences.mode(kind)) is Mode.NONE:
        return
    for each in recipients.recipients:
        if each.role in roles:
            found.setdefault(each.key, Addressed(recipient=each, list=recipients, mode=mode))


def _of_drafts(recipients: RecipientList) -> tuple[object, ...]:
    return recipients.name, recipients.time_zone, recipients.recipients
