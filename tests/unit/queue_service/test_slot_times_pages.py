"""Pages of slot times and their cache."""

from datetime import datetime, timedelta

from queue_service.adapters.schedule_client import _Cache
from queue_service.domain.account import AccountQueue, AnnouncedSchedule
from queue_service.domain.slot_times import SlotTimes
from testkit.clocks import START


def page(count: int, version: int = 1, release: str = "") -> SlotTimes:
    times = tuple(START + timedelta(hours=number) for number in range(count))
    schedule = AnnouncedSchedule(
        organization_id="acme",
        social_account_id="a",
        version=version,
        time_zone="UTC",
        max_posts_per_day=0,
        enabled=True,
        tzdata_version=release,
    )
    return SlotTimes(
        schedule_version=version,
        after=START,
        until=times[-1] + timedelta(hours=1),
        times=times,
        nominals=tuple(time.replace(tzinfo=None) for time in times),
        last=False,
        schedule=schedule if release else None,
    )


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def test_a_window_begins_at_the_instant_asked_for() -> None:
    five = page(5)
    assert five.window(at(1), 2) == (at(1), at(2))
    assert five.window(at(1.5), 2) == (at(2), at(3))
    assert five.window(at(4), 3) == (at(4),)
    assert five.window(at(9), 3) == ()


def test_each_time_has_its_wall_clock_time() -> None:
    five = page(5)
    assert [five.nominal_of(time) for time in five.times] == list(five.nominals)


def test_a_page_holds_for_its_version_and_tzdata_release() -> None:
    known = AccountQueue(social_account_id="a", schedule_version=3, tzdata_version="2026b")
    assert page(1, 3, "2026b").are_those_of(known)
    assert page(1, 3, "2026c").are_those_of(known)
    assert not page(1, 3, "2026a").are_those_of(known)
    assert not page(1, 3).are_those_of(known)
    assert not page(1, 2, "2026c").are_those_of(known)
    assert not page(1, 4, "2026c").are_those_of(known)


def test_a_page_covers_from_where_it_was_asked_to_where_it_ends() -> None:
    five = page(5)
    assert five.covers(at(0))
    assert five.covers(at(4.9))
    assert not five.covers(at(5))
    assert not five.covers(at(-0.1))


def test_the_least_recently_used_pages_are_dropped_first() -> None:
    cache = _Cache(10)
    for account in ("a", "b", "c"):
        cache.put(("acme", account, None), page(4))
        cache.find(("acme", "a", None))
    assert [account for account in ("a", "b", "c") if cache.find(("acme", account, None))] == ["a", "c"]


def test_a_page_replaces_the_one_before() -> None:
    cache = _Cache(10)
    for version in range(50):
        cache.put(("acme", "a", None), page(6, version))
    found = cache.find(("acme", "a", None))
    assert found
    assert found.schedule_version == 49
    cache.put(("acme", "a", None), None)
    assert cache.find(("acme", "a", None)) is None
    cache.put(("acme", "b", None), page(10))
    assert cache.find(("acme", "b", None))


def test_a_page_that_is_too_large_is_not_cached() -> None:
    cache = _Cache(10)
    cache.put(("acme", "a", None), page(11))
    assert cache.find(("acme", "a", None)) is None
