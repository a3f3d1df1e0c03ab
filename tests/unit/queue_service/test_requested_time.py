"""Announcements that ask for a time, and what each account answers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.requested_time import (
    AskedBefore,
    LiveSlot,
    RefusalReason,
    RefusedTime,
    Request,
    Step,
    answer,
    asking_accounts,
)
from queue_service.domain.slot import HORIZON, BlockingSlot, SlotOrigin, SlotState

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
NOON = NOW + timedelta(hours=3)
REQUEST = Request(draft=("acme", "d1"), draft_version=3, social_account_id="page", schedule_time=NOON)
OWN = LiveSlot(
    slot_id="s1", schedule_time=NOON - timedelta(hours=1), state=SlotState.SCHEDULED, origin=SlotOrigin.DRAFT
)
OTHER = BlockingSlot(slot_id="s2", social_account_id="page", schedule_time=NOON)
SAVED = SavedDraft(
    draft=Draft(
        organization_id="acme",
        id="d1",
        revision=1,
        targets=tuple(Target(social_account_id=each, channel="facebook", destination="") for each in ("page", "group")),
    ),
    version=3,
    is_approved=True,
    requested_time=NOON,
)
BEFORE = AskedBefore(version=2, is_approved=True, requested_time=NOON, accounts=frozenset({"page", "group"}))


def answered(
    request: Request = REQUEST,
    *,
    live: LiveSlot | None = None,
    has_targets: bool = True,
    blocking: BlockingSlot | None = None,
) -> Step | RefusalReason:
    found = answer(request, live=live, has_targets=has_targets, blocking=blocking, now=NOW)
    return found.reason if isinstance(found, RefusedTime) else found


ALL = {"page", "group"}


@pytest.mark.parametrize(
    ("saved", "before", "asking"),
    [
        (SAVED, None, ALL),
        (replace(SAVED, is_approved=False), None, set()),
        (replace(SAVED, requested_time=None), None, set()),
        (SAVED, BEFORE, set()),
        (SAVED, BEFORE._replace(is_approved=False), ALL),
        (SAVED, BEFORE._replace(requested_time=None), ALL),
        (SAVED, BEFORE._replace(requested_time=NOW), ALL),
        (SAVED, BEFORE._replace(accounts=frozenset({"page"})), {"group"}),
        (SAVED, BEFORE._replace(accounts=frozenset({"page", "group", "former"})), set()),
        (SAVED, BEFORE._replace(version=3, requested_time=NOW), set()),
        (SAVED, BEFORE._replace(version=4, is_approved=False), set()),
    ],
)
def test_only_a_newer_announcement_that_changes_the_question_asks(
    saved: SavedDraft, before: AskedBefore | None, asking: set[str]
) -> None:
    assert asking_accounts(saved, before) == asking


def test_a_free_time_is_booked_and_an_own_slot_moves() -> None:
    assert answered() is Step.BOOK
    assert answered(live=OWN) is Step.MOVE


@pytest.mark.parametrize("state", [SlotState.SCHEDULED, SlotState.DISPATCHED])
@pytest.mark.parametrize("origin", SlotOrigin)
def test_a_slot_at_the_very_time_stays(origin: SlotOrigin, state: SlotState) -> None:
    there = replace(OWN, schedule_time=NOON, origin=origin, state=state)
    assert answered(live=there, has_targets=False) is Step.KEEP
    assert answered(replace(REQUEST, schedule_time=NOW - timedelta(days=1)), live=OWN) is RefusalReason.TIME_PASSED


@pytest.mark.parametrize(
    "live",
    [
        replace(OWN, state=SlotState.DISPATCHED),
        replace(OWN, origin=SlotOrigin.QUEUE),
        replace(OWN, origin=SlotOrigin.EXACT),
    ],
)
def test_a_slot_that_is_dispatched_or_that_others_gave_is_not_moved(live: LiveSlot) -> None:
    assert answered(live=live) is RefusalReason.ALREADY_QUEUED


def test_what_cannot_be_given_is_refused_with_its_reason() -> None:
    assert answered(has_targets=False) is RefusalReason.DRAFT_PUBLISHED
    assert answered(blocking=OTHER) is RefusalReason.SLOT_TAKEN
    for ahead, found in (
        (timedelta(minutes=-1), Step.BOOK),
        (timedelta(minutes=-1, microseconds=-1), RefusalReason.TIME_PASSED),
        (HORIZON, Step.BOOK),
        (HORIZON + timedelta.resolution, RefusalReason.TIME_TOO_FAR),
    ):
        assert answered(replace(REQUEST, schedule_time=NOW + ahead)) is found
