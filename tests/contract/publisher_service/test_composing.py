"""Mails of every kind are written in text and HTML, and no fact of one begins a header or a tag."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes, policy
from email.headerregistry import Address
from email.message import EmailMessage

import pytest

from publisher_service.adapters.mail.composing import Letter, Links, compose
from publisher_service.domain.delivery import Delivery
from publisher_service.domain.notification import CHOSEN, Notification, NotificationKind
from testkit.clocks import START

SENDER = Address(display_name="PostFlow", addr_spec="postflow@example.com")
LINKS = Links(reconnect="https://app.example.com/reconnect?from=mail", preferences="https://app.example.com/me")
FACTS: Mapping[str, str] = {
    "channel": "facebook",
    "draft_id": "d1",
    "account_name": "The page",
    "error_message": "The image is too large",
    "error_reason": "REJECTED",
    "external_url": "https://example.com/p/1",
    "expire_time": "2026-03-09T09:00:00Z",
}
FAILING = {**FACTS, "reason": "REFRESH_FAILING", "expire_time": ""}
HOSTILE = 'x\r\nBcc: eve@example.com\r\n\r\n<script>alert("1")</script> {{ 7 * 7 }}'


def a_letter(kind: NotificationKind, *facts: Mapping[str, str], name: str = "Ann", brand: str = "") -> Letter:
    about = NotificationKind.POST_FAILED if kind is NotificationKind.DIGEST else kind
    notifications = [
        Notification(
            organization_id="acme",
            kind=about,
            subject_id=f"j{number}",
            occasion="1",
            time=START,
            social_account_id="page",
            facts=each,
        )
        for number, each in enumerate(facts or (FACTS,))
    ]
    delivery = Delivery(
        organization_id="acme",
        id="0195-d1",
        notification_id="n1",
        kind=kind,
        receiver="",
        email="ann@example.com",
        name=name,
        brand_id="shop",
        due_time=START,
        create_time=START,
        update_time=START,
        items=len(notifications),
    )
    return Letter(delivery=delivery, notifications=notifications, brand_name=brand)


def composed(letter: Letter, links: Links = LINKS) -> EmailMessage:
    mail = compose(letter, sender=SENDER, links=links, now=START)
    assert (mail.sender, mail.recipient) == ("postflow@example.com", "ann@example.com")
    message = message_from_bytes(mail.content, policy=policy.default)
    assert not message.defects
    return message


def bodies(message: EmailMessage) -> tuple[str, str]:
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None
    assert html is not None
    return plain.get_content(), html.get_content()


@pytest.mark.parametrize("kind", [*CHOSEN, NotificationKind.DIGEST])
def test_a_mail_of_each_kind_names_its_account(kind: NotificationKind) -> None:
    message = composed(a_letter(kind, brand="The shop"))
    for text in bodies(message):
        assert "The page" in text
        assert "The shop" in text
        assert "{{" not in text
    assert message["Subject"].startswith("[The shop] ")
    assert message["Message-ID"] == "<0195-d1@example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    wanted = "<https://app.example.com/me?organization_id=acme&brand_id=shop>"
    assert message["List-Unsubscribe"].strip() == wanted


def test_a_long_address_to_unsubscribe_is_not_encoded() -> None:
    letter, host = a_letter(NotificationKind.POST_FAILED), f"{'mail.' * 16}example.com"
    sender = Address(display_name="PostFlow", addr_spec=f"postflow@{host}")
    page = f"https://app.example.com/{'me/' * 90}"
    for links, url in (
        (Links(preferences=page), f"{page}?organization_id=acme&brand_id=shop"),
        (Links(), f"mailto:postflow@{host}?subject=unsubscribe"),
    ):
        mail = compose(letter, sender=sender, links=links, now=START)
        assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in mail.content


@pytest.mark.parametrize("kind", [NotificationKind.ACCOUNT_DISCONNECTED, NotificationKind.ACCOUNT_EXPIRES_SOON])
def test_the_link_to_connect_again_names_organization_and_account(kind: NotificationKind) -> None:
    plain, html = bodies(composed(a_letter(kind)))
    link = "https://app.example.com/reconnect?from=mail&organization_id=acme&social_account_id=page"
    assert link in plain
    assert link.replace("&", "&amp;") in html
    for text in bodies(composed(a_letter(kind), Links())):
        assert "app.example.com" not in text
        assert "connect the account again" in text


def test_the_end_of_a_connection_is_shown_by_the_clocks_of_the_list() -> None:
    letter = replace(a_letter(NotificationKind.ACCOUNT_EXPIRES_SOON), time_zone="Asia/Tokyo")
    assert "ends soon, 2026-03-09 18:00 (Asia/Tokyo)." in bodies(composed(letter))[0]
    unknown = a_letter(NotificationKind.ACCOUNT_EXPIRES_SOON, {**FACTS, "expire_time": ""})
    assert "ends soon. Until then" in bodies(composed(unknown))[0]


@pytest.mark.parametrize("links", [LINKS, Links()], ids=["links", "no links"])
def test_a_refresh_that_fails_is_no_end(links: Links) -> None:
    message = composed(a_letter(NotificationKind.ACCOUNT_EXPIRES_SOON, FAILING), links)
    assert message["Subject"] == "The posts of The page wait"
    for text in bodies(message):
        assert "We cannot renew our connection to" in text
        assert "goes on as usual" not in text
        assert "2026-03-09" not in text
        assert ("Connect it again" in text) is bool(links.reconnect)


def test_a_digest_says_that_posts_wait_for_a_refresh() -> None:
    digest = a_letter(NotificationKind.DIGEST, FAILING)
    (fact,) = digest.notifications
    joined = replace(digest, notifications=[replace(fact, kind=NotificationKind.ACCOUNT_EXPIRES_SOON)])
    for text in bodies(composed(joined)):
        assert "The posts of The page wait" in text
        assert "ends soon" not in text


def test_a_disconnection_by_request_blames_no_provider() -> None:
    by_request = {**FACTS, "reason": "DISCONNECTED_BY_REQUEST"}
    plain, _ = bodies(composed(a_letter(NotificationKind.ACCOUNT_DISCONNECTED, by_request)))
    assert "by somebody of your team" in plain


def test_a_missed_post_is_no_refused_one() -> None:
    missed = composed(a_letter(NotificationKind.POST_FAILED, {**FACTS, "state": "MISSED"}))
    assert "missed its time" in missed["Subject"]
    assert "latest time had passed" in bodies(missed)[0]


@pytest.mark.parametrize("kind", [*CHOSEN, NotificationKind.TEST, NotificationKind.DIGEST])
def test_no_fact_begins_a_header_a_tag_or_a_template(kind: NotificationKind) -> None:
    hostile = dict.fromkeys([*FACTS, "state", "reason"], HOSTILE)
    message = composed(a_letter(kind, hostile, name="Ann\r\nBcc: eve@example.com", brand=HOSTILE))
    assert message["Bcc"] is None
    assert message["To"].addresses[0].addr_spec == "ann@example.com"
    assert len(message["To"].addresses) == 1
    _, html = bodies(message)
    assert "<script>" not in html
    assert "49" not in message["Subject"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a b", "file:///etc", "data:text/html,x", ""])
def test_only_web_addresses_become_links(url: str) -> None:
    post = {**FACTS, "external_url": url}
    for text in bodies(composed(a_letter(NotificationKind.POST_PUBLISHED, post))):
        assert not url or url not in text
        assert "See it" not in text


def test_a_digest_lists_what_it_shows_and_counts_the_rest() -> None:
    letter = a_letter(NotificationKind.DIGEST, FACTS, {**FACTS, "channel": "linkedin_profile"})
    more = replace(letter, delivery=replace(letter.delivery, items=7))
    message = composed(more)
    assert message["Subject"] == "7 updates on your posts"
    for text in bodies(message):
        assert "linkedin_profile" in text
        assert "And 5 more." in text


def test_two_attempts_differ_in_nothing_that_a_receiver_compares() -> None:
    letter = a_letter(NotificationKind.POST_FAILED)
    first = composed(letter)
    later = compose(letter, sender=SENDER, links=LINKS, now=START + timedelta(hours=5))
    second = message_from_bytes(later.content, policy=policy.default)
    for name in ("Message-ID", "Subject", "To", "From"):
        assert first[name] == second[name]
    assert bodies(first) == bodies(second)
