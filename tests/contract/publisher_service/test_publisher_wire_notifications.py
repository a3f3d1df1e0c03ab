"""Events of Publisher and Drafts are read as facts and recipients, and stored ones still decode."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from postflow.bus.v1.bus_pb2 import Event
from postflow.drafts.v1.drafts_events_pb2 import BRAND_ROLE_ADMIN, BRAND_ROLE_EDITOR, BrandRecipient, BrandSaved
from publisher_service.domain.account import AccountReason, AccountState, SocialAccount, disconnected
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.post_job import EventKind, JobState, PostJob, Target, kind_of
from publisher_service.domain.recipients import Recipient, Role
from publisher_service.wire.accounts import account_disconnected, account_expires_soon
from publisher_service.wire.happenings import (
    brand_recipients,
    disconnection,
    expiry,
    is_notable,
    post_notification,
)
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.unreadable import UnreadableMessage
from publisher_service.wire.webhook_payloads import TYPES, webhook_payload
from servicekit.timestamps import timestamp

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
JOB = PostJob(
    organization_id="acme",
    id="j1",
    draft_id="d1",
    target=Target(social_account_id="page", channel="telegram", destination="@news"),
    state=JobState.PUBLISHED,
    run=2,
    brand_id="shop",
    publish_time=NOW - timedelta(hours=2),
    external_id="p1",
    external_url="https://example.com/p1",
    evidence_kind="PROVIDER_ID",
    create_time=NOW,
    update_time=NOW,
)
ACCOUNT = SocialAccount(
    organization_id="acme",
    id="page",
    provider="sandbox",
    external_account_id="e",
    display_name="The page",
    channels=("facebook",),
    state=AccountState.CONNECTED,
    version=1,
    create_time=NOW,
    update_time=NOW,
)
# As the first release that sends them encodes it.
BRAND = bytes.fromhex(
    "0a0461636d65120473686f70180322085468652073686f702a0d4575726f70652f4265726c696e32180a0f616e6e406578616d706c652e63"
    "6f6d1203416e6e1801"
)


def changed(job: PostJob, kind: EventKind | None = None) -> object:
    return post_job_changed(job, kind).message


def test_only_ends_and_doubts_of_posts_are_notable() -> None:
    notable = {kind for kind in EventKind if is_notable(changed(JOB, kind))}  # type: ignore[arg-type]
    assert notable == {EventKind.SUCCEEDED, EventKind.FAILED, EventKind.MISSED, EventKind.NEEDS_ATTENTION}


def test_a_published_post_is_a_fact_of_the_time_it_went_out() -> None:
    fact = post_notification(changed(JOB))  # type: ignore[arg-type]
    assert (fact.kind, fact.subject_id, fact.occasion) == (NotificationKind.POST_PUBLISHED, "j1", "2")
    assert (fact.time, fact.social_account_id, fact.brand_id) == (JOB.publish_time, "page", "shop")
    assert fact.facts["external_url"] == "https://example.com/p1"
    assert fact.facts["publish_time"] == "2026-03-02T07:00:00.123456Z"


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (JobState.FAILED, NotificationKind.POST_FAILED),
        (JobState.MISSED, NotificationKind.POST_FAILED),
        (JobState.NEEDS_ATTENTION, NotificationKind.POST_NEEDS_ATTENTION),
    ],
)
def test_a_replayed_job_is_the_same_fact(state: JobState, kind: NotificationKind) -> None:
    job = replace(JOB, state=state, publish_time=None, external_id="", external_url="", error_reason="REJECTED")
    first = post_notification(changed(job))  # type: ignore[arg-type]
    assert (first.kind, first.facts["state"], first.time) == (kind, state, NOW)
    again = post_notification(changed(replace(job, version=9), kind_of(state)))  # type: ignore[arg-type]
    assert again.id == first.id


def test_a_changed_account_is_not_disconnected_again() -> None:
    gone = disconnected(ACCOUNT, AccountReason.CREDENTIALS_REFUSED, "expired", now=NOW)
    renamed = replace(gone, display_name="new", version=9, update_time=NOW + timedelta(days=9))
    first = disconnection(account_disconnected(gone, "expired").message)  # type: ignore[arg-type]
    assert disconnection(account_disconnected(renamed, "expired").message).id == first.id  # type: ignore[arg-type]
    assert (first.time, first.facts["error_message"], first.facts["account_name"]) == (NOW, "expired", "The page")
    later = disconnected(ACCOUNT, AccountReason.CREDENTIALS_REFUSED, "", now=NOW + timedelta(hours=1))
    assert disconnection(account_disconnected(later, "").message).id != first.id  # type: ignore[arg-type]


def test_the_note_of_a_person_is_no_error_of_the_provider() -> None:
    gone = disconnected(ACCOUNT, AccountReason.DISCONNECTED_BY_REQUEST, "ann has left us", now=NOW)
    fact = disconnection(account_disconnected(gone, "ann has left us").message)  # type: ignore[arg-type]
    assert "ann" not in repr(fact.facts)


def an_expiry(expire_time: datetime | None, version: int = 1, *, is_failing: bool = False) -> Notification:
    event = Event(organization_id="acme", occur_time=timestamp(NOW))
    account = replace(ACCOUNT, version=version, update_time=NOW - timedelta(days=60))
    return expiry(event, account_expires_soon(account, expire_time, is_failing=is_failing).message)  # type: ignore[arg-type]


def test_two_expiries_of_an_account_are_two_facts() -> None:
    later = NOW + timedelta(days=60)
    known = [(NOW, 1), (NOW, 2), (later, 3), (None, 3), (None, 3), (None, 4)]
    facts = [an_expiry(expire_time, version) for expire_time, version in known]
    assert len({fact.id for fact in facts}) == 4
    assert facts[2].facts["expire_time"] == "2026-05-01T09:00:00.123456Z"
    assert {fact.kind for fact in facts} == {NotificationKind.ACCOUNT_EXPIRES_SOON}


def test_failures_of_a_refresh_are_no_expiry() -> None:
    later = NOW + timedelta(days=300)
    failing = an_expiry(later, 4, is_failing=True)
    assert failing.facts["reason"] == "REFRESH_FAILING"
    assert not failing.facts["expire_time"]
    assert len({failing.id, an_expiry(later, 4).id, an_expiry(later, 5, is_failing=True).id}) == 3


def test_an_account_that_nobody_has_changed_for_months_expires_now() -> None:
    assert an_expiry(NOW + timedelta(days=7)).time == NOW


def test_the_stored_brand_still_decodes() -> None:
    found = brand_recipients(BrandSaved.FromString(BRAND))
    assert (found.organization_id, found.brand_id, found.announced_version) == ("acme", "shop", 3)
    assert (found.name, found.time_zone) == ("The shop", "Europe/Berlin")
    assert found.recipients == (Recipient(email="ann@example.com", name="Ann", role=Role.ADMIN),)


def a_brand(**fields: object) -> BrandSaved:
    return BrandSaved(**{"organization_id": "acme", "brand_id": "shop", "version": 1, **fields})  # type: ignore[arg-type]


def test_a_brand_names_each_address_once() -> None:
    twice = [BrandRecipient(email=each, role=BRAND_ROLE_EDITOR) for each in ("ann@example.com", "ANN@example.com")]
    found = brand_recipients(a_brand(recipients=twice))
    assert [each.email for each in found.recipients] == ["ANN@example.com"]
    assert found.time_zone == "UTC"


@pytest.mark.parametrize(
    "brand",
    [
        a_brand(organization_id=""),
        a_brand(brand_id=""),
        a_brand(version=0),
        a_brand(time_zone="Mars/Olympus"),
        a_brand(recipients=[BrandRecipient(email="ann@example.com\r\nBcc: e@example.com", role=BRAND_ROLE_ADMIN)]),
        a_brand(recipients=[BrandRecipient(email="ann@example.com", name="A\r\nB", role=BRAND_ROLE_ADMIN)]),
        a_brand(recipients=[BrandRecipient(email="ann@example.com")]),
        a_brand(recipients=[BrandRecipient(email=f"p{n}@example.com", role=BRAND_ROLE_ADMIN) for n in range(51)]),
    ],
)
def test_a_brand_that_nobody_could_be_mailed_about_is_refused(brand: BrandSaved) -> None:
    with pytest.raises(UnreadableMessage) as refused:
        brand_recipients(brand)
    assert "example.com" not in str(refused.value)


def test_a_payload_is_the_same_bytes_each_time() -> None:
    fact = post_notification(changed(JOB))  # type: ignore[arg-type]
    payload = webhook_payload(fact)
    assert webhook_payload(fact) == payload
    assert json.loads(payload)["type"] == "post.published"
    assert json.loads(payload)["timestamp"] == "2026-03-02T07:00:00.123456Z"
    assert json.loads(payload)["data"]["organization_id"] == "acme"
    assert set(TYPES) == set(NotificationKind) - {NotificationKind.DIGEST}
