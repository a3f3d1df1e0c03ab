"""Recipients of a mail, what is an address, and the time of a digest on each day of the year."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from civil.zones import find_zone
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.recipients import (
    Addressed,
    Mode,
    Preferences,
    Recipient,
    RecipientList,
    Role,
    addressed,
    announced,
    is_email,
    local_time,
    next_digest,
    put,
)
from servicekit.faults import Conflict, Refused
from testkit.clocks import START

ANN, BOB = Recipient(email="ann@example.com", role=Role.ADMIN), Recipient(email="bob@example.com", role=Role.EDITOR)
SHOP = RecipientList(organization_id="acme", brand_id="shop", recipients=(ANN, BOB))
DEFAULT = replace(SHOP, brand_id="", recipients=(replace(ANN, email="ANN@example.com", role=Role.EDITOR),))
LISTS = {each.key: each for each in (SHOP, DEFAULT)}


@pytest.mark.parametrize(
    "email",
    ["ann@example.com", "ann.b+c@mail.example.co.uk", "o'neil@example.com", "a@xn--bcher-kva.example", "1@2.io"],
)
def test_an_address_is_accepted(email: str) -> None:
    assert is_email(email)


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ann",
        "ann@",
        "@example.com",
        "ann@localhost",
        "ann@example.com ",
        "ann@example.com\r\nBcc: eve@example.com",
        "ann@example.com\n",
        "ann@exam ple.com",
        "ann,eve@example.com",
        "<ann@example.com>",
        "ann..b@example.com",
        ".ann@example.com",
        '"a b"@example.com',
        "ann@-example.com",
        "ann@example..com",
        "ann@127.0.0.1",
        "ann@[127.0.0.1]",
        "änn@example.com",
        "ann@exämple.com",
        f"{'a' * 65}@example.com",
        f"a@{'b' * 64}.com",
        f"a@{'b.' * 130}com",
        "ann@example.com?bcc=eve@example.com",
        "=?utf-8?q?x?=@example.com",
        "ann.=?utf-8?q?x@example.com",
    ],
    ids=repr,
)
def test_what_is_no_address_or_more_than_one_is_refused(email: str) -> None:
    assert not is_email(email)


@pytest.mark.parametrize(
    ("zone", "now", "due"),
    [
        ("UTC", "2026-03-02T07:59", "2026-03-02T08:00"),
        ("UTC", "2026-03-02T08:00", "2026-03-03T08:00"),
        ("Europe/Berlin", "2026-03-28T12:00", "2026-03-29T06:00"),  # the clocks go forward in this night
        ("Europe/Berlin", "2026-10-24T12:00", "2026-10-25T07:00"),  # and back in this one
        ("Pacific/Apia", "2026-03-02T12:00", "2026-03-02T19:00"),
        ("Nowhere/Dropped", "2026-03-02T07:00", "2026-03-02T08:00"),
    ],
)
def test_a_digest_comes_at_its_hour_by_the_clocks_of_the_zone(zone: str, now: str, due: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert next_digest(replace(SHOP, time_zone=zone), now=moment) == datetime.fromisoformat(due).replace(tzinfo=UTC)


def test_a_digest_hour_that_the_clocks_skip_comes_after_the_gap() -> None:
    skipped = replace(SHOP, time_zone="Europe/Berlin", preferences=Preferences(digest_hour=2))
    due = next_digest(skipped, now=datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert due == datetime(2026, 3, 29, 1, tzinfo=UTC)  # 03:00 by the clocks, which show no 02:00


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_a_year_has_a_digest_each_day(zone: str) -> None:
    now, end, days = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), []
    while (now := next_digest(replace(SHOP, time_zone=zone), now=now)) < end:
        local = now + find_zone(zone).offset_at(now)
        assert (local.hour, local.minute) == (8, 0)
        days.append(local.date())
    assert len(days) == len(set(days)) >= 365


def test_an_address_on_several_lists_gets_one_mail() -> None:
    fact = Notification(
        organization_id="acme",
        kind=NotificationKind.ACCOUNT_DISCONNECTED,
        subject_id="page",
        occasion="t",
        time=START,
    )
    found = addressed(fact, LISTS, ["shop", "unknown"])
    assert found == [Addressed(recipient=DEFAULT.recipients[0], list=DEFAULT, mode=Mode.EACH)]
    silent = {**LISTS, DEFAULT.key: replace(DEFAULT, preferences=Preferences(kinds=(NotificationKind.POST_FAILED,)))}
    assert [each.recipient for each in addressed(fact, silent, ["shop"])] == [ANN]


def test_an_announcement_that_is_not_newer_changes_nothing() -> None:
    known = replace(SHOP, announced_version=3, version=7, preferences=Preferences(digest_hour=9))
    for version in (2, 3):
        assert announced(known, replace(SHOP, announced_version=version)) is None
    after = announced(known, replace(SHOP, announced_version=4, recipients=()))
    assert after is not None
    assert (after.recipients, after.preferences.digest_hour, after.version) == ((), 9, 8)


def test_a_put_is_refused_with_a_stale_etag_or_for_drafts() -> None:
    with pytest.raises(Conflict):
        put(SHOP, SHOP, etag="9")
    with pytest.raises(Conflict):
        put(None, SHOP, etag="1")
    of_drafts = replace(SHOP, announced_version=1)
    with pytest.raises(Refused):
        put(of_drafts, replace(SHOP, recipients=(ANN,)), etag="")
    assert put(of_drafts, replace(SHOP, preferences=Preferences(published=Mode.NONE)), etag="1").version == 2


def test_times_are_shown_by_the_clocks_of_the_zone() -> None:
    assert local_time(START + timedelta(minutes=5), "Asia/Tokyo") == "2026-03-02 18:05 (Asia/Tokyo)"
