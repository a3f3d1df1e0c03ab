"""Writes mails: plain text and HTML, from templates in this package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from publisher_service.adapters.mail.mail import Mail
from publisher_service.adapters.mail_policy import POLICY
from publisher_service.domain.delivery import Delivery
from publisher_service.domain.notification import Fact, Notification, NotificationKind, one_line
from publisher_service.domain.recipients import local_time

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST_SUBJECT: Final = 150
_LONGEST_NAME: Final = 80
_REASONS: Final[Mapping[str, str]] = {
    "REJECTED": "The provider refused it.",
    "CONTENT_UNREADABLE": "Its text could not be read.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Addresses of the user interface, to which the names of what is meant are added; empty: there is none."""

    reconnect: str = ""
    preferences: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The contents of a mail, and the list to which its recipient belongs."""

    delivery: Delivery
    notifications: Sequence[Notification]
    brand_name: str = ""
    time_zone: str = "UTC"


def compose(letter: Letter, *, sender: Address, links: Links, now: datetime) -> Mail:
    """Returns the mail of a delivery. Its Message-ID is the same in every attempt: the receiver drops a repeat."""
    delivery = letter.delivery
    view = _view(letter, links)
    message = EmailMessage(policy=POLICY)
    message["From"] = sender
    message["To"] = Address(display_name=one_line(delivery.name, most=_LONGEST_NAME), addr_spec=delivery.email)
    message["Subject"] = one_line(_subject(letter, view["items"]), most=_LONGEST_SUBJECT)
    message["Date"] = format_datetime(now)
    message["Message-ID"] = f"<{delivery.id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message["List-Unsubscribe"] = f"<{_unsubscribe(letter, sender, links)}>"
    template = delivery.kind.lower()
    environment = _environment()
    message.set_content(environment.get_template(f"{template}.txt.j2").render(view))
    message.add_alternative(environment.get_template(f"{template}.html.j2").render(view), subtype="html")
    return Mail(id=delivery.id, sender=sender.addr_spec, recipient=delivery.email, content=message.as_bytes())


@cache
def _environment() -> "Environment":
    from jinja2 import (  # a process that sends no mail does without: 4 MB
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=PackageLoader("publisher_service.adapters.mail"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _view(letter: Letter, links: Links) -> dict[str, Any]:
    """Returns what the templates show: texts only, each on one line."""
    items = [_item(each, letter, links) for each in letter.notifications]
    return {
        "items": items,
        "item": items[0] if items else None,
        "more": max(letter.delivery.items - len(items), 0),
        "brand": one_line(letter.brand_name, most=_LONGEST_NAME),
        "preferences_link": _preferences_link(letter, links),
    }


def _item(notification: Notification, letter: Letter, links: Links) -> dict[str, str]:
    facts = notification.facts
    account = one_line(str(facts.get("account_name", "")), most=_LONGEST_NAME) or notification.social_account_id
    return {
        "kind": notification.kind,
        "account": account,
        "channel": str(facts.get("channel", "")),
        "draft": str(facts.get("draft_id", "")),
        "time": local_time(notification.time, letter.time_zone),
        "expires": _shown_time(str(facts.get("expire_time", "")), letter.time_zone),
        "is_missed": "yes" if facts.get("state") == "MISSED" else "",
        "is_failing": "yes" if facts.get("reason") == "REFRESH_FAILING" else "",
        "is_requested": "yes" if facts.get("reason") == "DISCONNECTED_BY_REQUEST" else "",
        "url": _web_address(facts),
        "reason": _REASONS.get(str(facts.get("error_reason", "")), ""),
        "error": one_line(str(facts.get("error_message", ""))),
        "link": _link(
            links.reconnect,
            organization_id=notification.organization_id,
            social_account_id=notification.social_account_id,
        ),
    }


def _subject(letter: Letter, items: Sequence[Mapping[str, str]]) -> str:
    brand = f"[{letter.brand_name}] " if letter.brand_name else ""
    item = items[0] if items else {"account": "", "channel": "", "is_missed": "", "is_failing": ""}
    match letter.delivery.kind:
        case NotificationKind.POST_PUBLISHED:
            return f"{brand}Published on {item['account']} ({item['channel']})"
        case NotificationKind.POST_FAILED if item["is_missed"]:
            return f"{brand}A post on {item['account']} ({item['channel']}) missed its time"
        case NotificationKind.POST_FAILED:
            return f"{brand}A post on {item['account']} ({item['channel']}) was not published"
        case NotificationKind.POST_NEEDS_ATTENTION:
            return f"{brand}Please check a post on {item['account']} ({item['channel']})"
        case NotificationKind.ACCOUNT_DISCONNECTED:
            return f"{brand}{item['account']} needs to be connected again"
        case NotificationKind.ACCOUNT_EXPIRES_SOON if item["is_failing"]:
            return f"{brand}The posts of {item['account']} wait"
        case NotificationKind.ACCOUNT_EXPIRES_SOON:
            return f"{brand}The connection of {item['account']} ends soon"
        case NotificationKind.TEST:
            return "A test notification of PostFlow"
        case NotificationKind.DIGEST:
            count = max(letter.delivery.items, len(items))
            return f"{brand}{count} {'update' if count == 1 else 'updates'} on your posts"


def _shown_time(text: str, time_zone: str) -> str:
    """Returns a time of a fact as people write it; nothing if there is none."""
    try:
        return local_time(datetime.fromisoformat(text), time_zone) if text else ""
    except (TypeError, ValueError):
        return ""


def _web_address(facts: Mapping[str, Fact]) -> str:
    """Returns the address of the post, if it is one that a mail may link to."""
    url = str(facts.get("external_url", ""))
    return url if url.startswith(("https://", "http://")) and url.isprintable() and " " not in url else ""


def _link(base: str, **names: str) -> str:
    return f"{base}{'&' if '?' in base else '?'}{urlencode(names)}" if base else ""


def _preferences_link(letter: Letter, links: Links) -> str:
    return _link(links.preferences, organization_id=letter.delivery.organization_id, brand_id=letter.delivery.brand_id)


def _unsubscribe(letter: Letter, sender: Address, links: Links) -> str:
    return _preferences_link(letter, links) or f"mailto:{sender.addr_spec}?subject=unsubscribe"
