"""Puts and releases of one hold: the newest revision counts, in any order of arrival."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from publisher_service.domain.hold import Hold, Scope, WantedHold, put, released
from servicekit.faults import NotFound, Refused
from tests.unit.publisher_service.post_jobs import NOW

LATER = NOW + timedelta(minutes=1)


def wanted(revision: int = 0, *, account: str = "page") -> WantedHold:
    return WantedHold(
        organization_id="acme",
        id="hold",
        scope=Scope.ACCOUNT,
        scope_id=account,
        revision=revision,
        reason="why",
        holder="who",
    )


def release(known: Hold | None, revision: int = 0) -> Hold:
    return released(known, "acme", "hold", revision, now=LATER)


def test_revisions_grow_when_none_is_given() -> None:
    first = put(None, wanted(), now=NOW)
    second = put(first, wanted(), now=LATER)
    third = release(second)
    assert [each.revision for each in (first, second, third)] == [1, 2, 3]
    assert (third.in_force, third.reason, third.holder) == (False, "why", "who")
    assert (third.create_time, third.update_time) == (NOW, LATER)


@pytest.mark.parametrize("order", list(permutations((1, 2, 3, 4))))
def test_the_newest_revision_counts_in_any_order(order: tuple[int, ...]) -> None:
    """Odd revisions are puts, even ones releases."""
    hold: Hold | None = None
    for revision in order:
        with suppress(Refused):
            hold = put(hold, wanted(revision), now=NOW) if revision % 2 else release(hold, revision)
    assert hold is not None
    assert (hold.revision, hold.in_force) == (4, False)


def test_a_known_revision_changes_nothing() -> None:
    held = put(None, wanted(5), now=NOW)
    assert put(held, replace(wanted(5), reason="another"), now=LATER) is held
    gone = release(held, 6)
    assert release(gone, 6) is gone
    assert release(gone) is gone


def test_a_put_and_a_release_of_one_revision_exclude_each_other() -> None:
    held = put(None, wanted(5), now=NOW)
    with pytest.raises(Refused):
        release(held, 5)
    gone = release(None, 5)
    with pytest.raises(Refused) as refusal:
        put(gone, wanted(5), now=NOW)
    assert refusal.value.metadata == {"hold_id": "hold", "revision": "5"}


def test_an_unknown_hold_is_released_only_with_a_revision() -> None:
    with pytest.raises(NotFound) as refusal:
        release(None)
    assert refusal.value.reason == "HOLD_NOT_FOUND"
    kept = release(None, 2)
    assert (kept.revision, kept.in_force, kept.scope) == (2, False, "")
    # It was no hold yet, so its time does not count.
    first = put(kept, wanted(3), now=LATER + timedelta(hours=1))
    assert (first.create_time, first.scope_id) == (LATER + timedelta(hours=1), "page")


def test_a_hold_covers_one_account_forever() -> None:
    gone = release(put(None, wanted(), now=NOW))
    with pytest.raises(Refused) as refusal:
        put(gone, wanted(account="another"), now=LATER)
    assert (refusal.value.reason, refusal.value.metadata["scope_id"]) == ("HOLD_SCOPE_CHANGED", "page")
