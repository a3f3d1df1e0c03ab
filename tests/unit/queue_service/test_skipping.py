"""Skipping a time, and taking it back."""

from datetime import timedelta

import pytest

from queue_service.domain.account import AccountQueue
from queue_service.domain.frontier import NOTHING_KNOWN
from queue_service.domain.skipping import skip, undo
from servicekit.faults import Refused
from testkit.clocks import START

HOUR = timedelta(hours=1)
NEXT, LATER = START + HOUR, START + 2 * HOUR
QUEUE = AccountQueue(social_account_id="page", frontier=NOTHING_KNOWN.passed(START + 9 * HOUR))


def test_skipping_twice_skips_one_time() -> None:
    once = skip(QUEUE, START)
    assert once.skip_next
    assert skip(once, START) == once


def test_an_undo_takes_back_a_skip_before_a_skipped_time() -> None:
    skipped = AccountQueue(social_account_id="page", skip_next=True, skipped_times=(NEXT,))
    assert undo(skipped, START) == AccountQueue(social_account_id="page", skipped_times=(NEXT,))


def test_an_undo_frees_the_time_that_was_skipped_last() -> None:
    used = AccountQueue(social_account_id="page", skipped_times=(LATER, NEXT), frontier=QUEUE.frontier)
    after = undo(used, START)
    assert after.skipped_times == (LATER,)
    assert after.frontier.next_open(START) == NEXT


@pytest.mark.parametrize("skipped", [(), (START,), (START - HOUR,)])
def test_an_undo_without_a_skip_is_refused(skipped: tuple[object, ...]) -> None:
    queue = AccountQueue(social_account_id="page", skipped_times=skipped)  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        undo(queue, START)
    assert (refused.value.reason, refused.value.metadata) == ("NOTHING_SKIPPED", {"social_account_id": "page"})


def test_times_that_have_passed_are_forgotten() -> None:
    queue = AccountQueue(social_account_id="page", skipped_times=(START, NEXT))
    assert skip(queue, START).skipped_times == (NEXT,)
