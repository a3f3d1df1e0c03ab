"""Notifications: facts about posts and accounts that people and webhooks get to know, each once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from publisher_service.domain.derived_ids import derived_id

LONGEST_ERROR: Final = 300

# Line ends, other control characters, and what sets the direction of a text.
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
_NAMED_SECRET = re.compile(r"(?i)\b(bearer\s+|(?:access_token|token|secret|password|key|authorization)\s*[=:]\s*)\S+")
# A long word with a digit, or with a capital inside: hardly any word of a language is one.
_TOKEN = re.compile(r"(?=[\w.~+/=-]*(?:[0-9]|[a-z][A-Z]))[\w.~+/=-]{20,}")


class NotificationKind(StrEnum):
    POST_PUBLISHED = "POST_PUBLISHED"
    POST_FAILED = "POST_FAILED"
    POST_NEEDS_ATTENTION = "POST_NEEDS_ATTENTION"
    ACCOUNT_DISCONNECTED = "ACCOUNT_DISCONNECTED"
    ACCOUNT_EXPIRES_SOON = "ACCOUNT_EXPIRES_SOON"
    TEST = "TEST"
    # An e-mail that joins several.
    DIGEST = "DIGEST"


CHOSEN: Final = tuple(kind for kind in NotificationKind if kind not in {NotificationKind.TEST, NotificationKind.DIGEST})
"""The kinds that people and webhooks can choose."""
ABOUT_ACCOUNTS: Final = frozenset({NotificationKind.ACCOUNT_DISCONNECTED, NotificationKind.ACCOUNT_EXPIRES_SOON})

Fact = str | int
Facts = Mapping[str, Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    organization_id: str
    kind: NotificationKind
    # A post job or an account.
    subject_id: str
    # Distinguishes the times that this happens to the subject: the run of a post, the moment of a disconnection.
    occasion: str
    time: datetime
    social_account_id: str = ""
    # Of a post that has one.
    brand_id: str = ""
    # What is known about it, by the names that webhooks get.
    facts: Facts = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Returns the natural key in short: if it is announced again, it is the same notification."""
        return derived_id(self.organization_id, self.kind, self.subject_id, self.occasion)

    @property
    def account_key(self) -> tuple[str, str]:
        return self.organization_id, self.social_account_id


def is_news(notification: Notification, *, now: datetime, max_age: timedelta) -> bool:
    """Returns whether people still want to hear of it: a replay speaks of last month."""
    return notification.time >= now - max_age


def one_line(text: str, *, most: int = LONGEST_ERROR) -> str:
    """Returns the text on one line, so that it begins no header, and not longer than people read."""
    seen = _UNSEEN.sub(" ", text).strip()
    return seen if len(seen) <= most else f"{seen[: most - 3]}..."


def shown_error(text: str) -> str:
    """Returns what a provider has said, without what looks like a secret: adapters remove only those they know."""
    return one_line(_TOKEN.sub("***", _NAMED_SECRET.sub(r"\1***", one_line(text, most=2000))))
