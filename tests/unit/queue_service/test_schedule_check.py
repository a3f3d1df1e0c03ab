"""Slot times that were read before the lock are given out only if they are those of the locked account."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from queue_service.domain.account import AccountKey, AccountQueue, AnnouncedSchedule
from queue_service.domain.openings import Lack
from queue_service.domain.schedule_check import ReadAgain, current_times, newer_schedules, shortage, usable
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, NotFound, Refused, Unavailable
from testkit.clocks import START

HOUR = timedelta(hours=1)
PAGE: AccountKey = ("acme", "page")


def queue(version: int = 2, *, enabled: bool = True, zone: str = "UTC") -> AccountQueue:
    return AccountQueue(social_account_id="page", schedule_version=version, time_zone=zone, enabled=enabled)


def times(version: int = 2, hours: int = 1, *, after: int = 0, release: str = "") -> Mapping[str, SlotTimes]:
    schedule = AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=version,
        time_zone="UTC",
        max_posts_per_day=0,
        enabled=True,
        tzdata_version=release,
    )
    return {
        "": SlotTimes(
            schedule_version=version,
            after=START + after * HOUR,
            until=START + hours * HOUR,
            times=(START,),
            nominals=(None,),
            last=False,
            schedule=schedule,
        )
    }


def test_times_are_refused_only_if_the_window_leaves_no_line_any() -> None:
    [line] = times().values()
    none = replace(line, times=(), nominals=(), all_outside=True)
    assert usable(queue(), {"": line, "news": none})
    with pytest.raises(Refused, match="no weekly slot of account page lies inside its send window") as refused:
        usable(queue(), {"": none, "news": none})
    assert refused.value.reason == "HORIZON_EXHAUSTED"
    assert usable(queue(), {}) == {}


@pytest.mark.parametrize(
    ("locked", "read", "kind", "reason"),
    [
        (queue(), NotFound("NO", "no"), NotFound, "NO"),
        (queue(1), times(2), Unavailable, "SCHEDULE_CHANGING"),
        (queue(3), times(2), ReadAgain, "SCHEDULE_CHANGING"),
        (queue(enabled=False), times(), Refused, "SCHEDULE_DISABLED"),
        (queue(zone="Europe/Atlantis"), times(), Refused, "UNKNOWN_TIME_ZONE"),
    ],
)
def test_times_that_may_not_be_given_out_are_refused(
    locked: AccountQueue, read: Mapping[str, SlotTimes] | Fault, kind: type[Fault], reason: str
) -> None:
    with pytest.raises(kind) as refused:
        usable(locked, read)
    assert (type(refused.value), refused.value.reason) == (kind, reason)
    assert current_times({PAGE: locked}, [{PAGE: read}], START) == {}


def test_times_of_the_locked_schedule_are_given_out() -> None:
    assert usable(queue(), times()) == times()


def test_the_page_that_leads_furthest_is_used_by_all_calls() -> None:
    pages = [times(hours=1), times(hours=5), times(hours=3), times(hours=9, after=2), times(1, hours=20)]
    assert current_times({PAGE: queue()}, [{PAGE: page} for page in pages], START) == {PAGE: times(hours=5)}


def test_the_newest_of_the_schedules_that_were_read_is_learned() -> None:
    read = [times(2), times(4), times(3), times(4, release="2026a")]
    [learned] = newer_schedules({PAGE: queue()}, [{PAGE: each} for each in read])
    assert (learned.version, learned.tzdata_version) == (4, "2026a")
    assert newer_schedules({PAGE: queue(9)}, [{PAGE: times(2)}]) == []


def test_an_account_without_a_free_time_refuses_the_call() -> None:
    refused = shortage({"a": Lack.MORE, "b": Lack.NONE})
    assert (refused.reason, refused.metadata["social_account_id"]) == ("HORIZON_EXHAUSTED", "b")


@pytest.mark.parametrize(("lacks", "needs_more"), [("MORE", True), ("AGAIN", False), ("MORE AGAIN", False)])
def test_a_call_reads_again_before_it_is_refused(lacks: str, needs_more: bool) -> None:
    again = shortage({str(number): Lack(lack) for number, lack in enumerate(lacks.split())})
    assert isinstance(again, ReadAgain)
    assert again.needs_more is needs_more
