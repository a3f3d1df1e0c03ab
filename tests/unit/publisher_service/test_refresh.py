"""Credentials are refreshed ahead of their end, and what only a person can renew is announced before it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import (
    CredentialsState,
    Lifetime,
    RefreshDelayed,
    Refreshed,
    RefreshRefused,
    Step,
    asked_now,
    at_rest,
    connected,
    delayed,
    erased,
    forced,
    is_failing,
    is_settled,
    may_be_forced,
    missing_scopes,
    refresh_time,
    refreshed,
    refused,
    step_at,
    warned,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ACCOUNT = ("acme", "page")
NEW = Credentials(access_token="new", refresh_token="next")


def a_state(*, refreshable: bool = True, known: CredentialsState | None = None, **ends: timedelta) -> CredentialsState:
    times: dict[str, Any] = {name: NOW + after for name, after in ends.items()}
    lifetime = Lifetime(is_refreshable=refreshable, **times)
    return connected(known, "sandbox", lifetime, account=ACCOUNT, ahead=timedelta(0), now=NOW)


def next_one(state: CredentialsState, *, now: datetime = NOW, **ends: timedelta | None) -> CredentialsState:
    answer = Refreshed(credentials=NEW, **ends)
    return refreshed(state, answer, account=ACCOUNT, ahead=timedelta(0), asked=now, now=now)


def planned(life: timedelta, *, ahead: timedelta = timedelta(0), account: tuple[str, str] = ACCOUNT) -> timedelta:
    """Returns how long before its end a token of that life is refreshed."""
    lifetime = Lifetime(expire_time=NOW + life, is_refreshable=True)
    found = refresh_time(lifetime, account=account, ahead=ahead, now=NOW)
    assert found is not None
    return NOW + life - found


@pytest.mark.parametrize(
    ("life", "least"),
    [(60 * DAY, 7 * DAY), (365 * DAY, 7 * DAY), (10 * DAY, 2 * DAY), (2 * HOUR, timedelta(minutes=24))],
    ids=["60 days", "a year", "10 days", "2 hours"],
)
def test_a_token_is_refreshed_in_the_last_fifth_of_its_life(life: timedelta, least: timedelta) -> None:
    assert least <= planned(life) < least * 1.1


def test_a_provider_may_ask_for_an_earlier_refresh() -> None:
    assert planned(60 * DAY, ahead=20 * DAY) >= 20 * DAY
    assert planned(2 * HOUR, ahead=timedelta(minutes=1)) == planned(2 * HOUR)


@given(life=st.timedeltas(timedelta(seconds=1), 800 * DAY), ahead=st.timedeltas(timedelta(0), 100 * DAY))
def test_a_refresh_lies_in_the_second_half_of_a_life(life: timedelta, ahead: timedelta) -> None:
    assert timedelta(0) < planned(life, ahead=ahead) <= life / 2 + timedelta(microseconds=1)


def test_accounts_are_spread_and_each_keeps_its_place() -> None:
    times = [planned(60 * DAY, account=("acme", f"a{number}")) for number in range(100)]
    assert len(set(times)) == 100
    assert times == [planned(60 * DAY, account=("acme", f"a{number}")) for number in range(100)]
    hours = {int((time - 7 * DAY) / HOUR) for time in times}
    assert len(hours) > 10


def test_a_token_of_unknown_end_is_refreshed_only_when_it_is_refused() -> None:
    state = a_state()
    assert (state.refresh_time, state.next_time) == (None, None)
    assert may_be_forced(state, now=NOW)


def test_a_new_connection_begins_a_generation_and_keeps_the_count() -> None:
    known = replace(a_state(expire_time=HOUR), number=7, is_refused=True, error="no", is_warned=True)
    state = a_state(known=known, expire_time=2 * HOUR)
    assert (state.generation, state.number, state.error, state.can_refresh, state.is_warned) == (2, 7, "", True, False)


class TestSteps:
    def test_a_refresh_comes_at_its_time_and_not_before(self) -> None:
        state = a_state(expire_time=60 * DAY)
        assert state.refresh_time is not None
        assert state.next_time == state.refresh_time
        assert step_at(state, state.refresh_time - timedelta(seconds=1)) is Step.REST
        assert step_at(state, state.refresh_time) is Step.REFRESH

    def test_what_cannot_be_refreshed_is_announced_and_then_over(self) -> None:
        state = a_state(refreshable=False, expire_time=60 * DAY)
        assert state.next_time == NOW + 53 * DAY
        assert step_at(state, NOW + 53 * DAY) is Step.WARN
        noted = warned(state)
        assert noted.next_time == NOW + 60 * DAY
        assert step_at(noted, NOW + 59 * DAY) is Step.REST
        assert step_at(noted, NOW + 60 * DAY) is Step.EXPIRE

    def test_a_notice_that_was_missed_does_not_put_the_end_off(self) -> None:
        assert step_at(a_state(refreshable=False, expire_time=HOUR), NOW + HOUR) is Step.EXPIRE

    def test_the_end_of_a_refresh_token_is_announced_too(self) -> None:
        state = a_state(expire_time=60 * DAY, refresh_expire_time=10 * DAY)
        assert state.next_time == NOW + 3 * DAY
        assert step_at(state, NOW + 3 * DAY) is Step.WARN
        assert step_at(warned(state), NOW + 10 * DAY) is Step.REST

    def test_of_an_end_that_no_refresh_puts_off_people_hear_once(self) -> None:
        state = warned(a_state(expire_time=2 * HOUR, refresh_expire_time=6 * DAY))
        same = next_one(state, expires_in=2 * HOUR, refresh_expires_in=6 * DAY - timedelta(minutes=1))
        assert same.is_warned
        assert not next_one(state, expires_in=2 * HOUR, refresh_expires_in=60 * DAY).is_warned

    def test_nothing_is_due_of_a_disconnected_account(self) -> None:
        resting = at_rest(a_state(refreshable=False, expire_time=HOUR))
        assert resting.next_time is None


class TestAnswers:
    def test_a_refresh_begins_the_next_generation(self) -> None:
        state = replace(a_state(expire_time=HOUR), failures=3, error="down", lease_end=NOW + HOUR, number=4)
        after = next_one(state, now=NOW + HOUR, expires_in=2 * HOUR)
        assert (after.generation, after.lifetime.expire_time) == (2, NOW + 3 * HOUR)
        assert (after.failures, after.error, after.lease_end, after.number) == (0, "", None, 4)
        assert after.last_refresh_time == NOW + HOUR
        assert after.refresh_time is not None
        assert after.refresh_time > NOW + 2 * HOUR

    def test_a_provider_that_says_nothing_of_it_has_not_moved_the_last_end(self) -> None:
        state = a_state(expire_time=HOUR, refresh_expire_time=300 * DAY)
        assert next_one(state, expires_in=HOUR).lifetime.refresh_expire_time == NOW + 300 * DAY

    def test_a_delay_puts_the_next_attempt_off_longer_each_time(self) -> None:
        state, waits = a_state(expire_time=60 * DAY), []
        for _ in range(20):
            state = delayed(state, RefreshDelayed(message="down"), now=NOW, draw=1.0)
            assert state.next_time is not None
            waits.append(state.next_time - NOW)
        assert waits[:3] == [timedelta(seconds=5), timedelta(seconds=10), timedelta(seconds=20)]
        assert waits == sorted(waits)
        assert waits[-1] == HOUR
        assert (state.failures, state.error, state.generation) == (20, "down", 1)

    def test_posts_that_wait_have_it_tried_every_minute(self) -> None:
        state = replace(forced(a_state(expire_time=60 * DAY), now=NOW), failures=15)
        after = delayed(state, RefreshDelayed(message="down"), now=NOW, draw=1.0)
        assert after.next_time == NOW + timedelta(minutes=1)

    def test_a_provider_may_ask_for_a_longer_wait(self) -> None:
        answer = RefreshDelayed(message="later", retry_after=3 * HOUR)
        assert delayed(a_state(expire_time=DAY), answer, now=NOW, draw=0.0).next_time == NOW + 3 * HOUR

    def test_a_refusal_is_announced_at_once_and_ends_with_the_token(self) -> None:
        state = refused(a_state(expire_time=60 * DAY), RefreshRefused(message="revoked"), now=NOW)
        assert (state.can_refresh, state.error, state.next_time) == (False, "revoked", NOW)
        assert step_at(state, NOW) is Step.WARN
        noted = warned(state)
        assert noted.next_time == NOW + 60 * DAY
        assert step_at(noted, NOW + 60 * DAY) is Step.EXPIRE

    def test_a_refusal_of_a_token_without_end_is_announced_too(self) -> None:
        state = refused(a_state(), RefreshRefused(message="revoked"), now=NOW)
        assert step_at(state, NOW) is Step.WARN
        assert warned(state).next_time is None


class TestForced:
    def test_posts_wait_for_a_refresh_that_is_due_at_once(self) -> None:
        state = forced(a_state(expire_time=60 * DAY), now=NOW)
        assert state.is_urgent
        assert step_at(state, NOW) is Step.REFRESH
        assert state.next_time == NOW

    def test_a_refresh_in_flight_is_the_one_that_posts_wait_for(self) -> None:
        lease = NOW + timedelta(seconds=15)
        state = replace(a_state(expire_time=60 * DAY), lease_end=lease, next_time=lease)
        assert forced(state, now=NOW).next_time == lease

    def test_fresh_credentials_that_are_refused_again_are_not_refreshed(self) -> None:
        fresh = next_one(forced(a_state(expire_time=60 * DAY), now=NOW), expires_in=60 * DAY)
        assert not fresh.is_urgent
        assert not may_be_forced(fresh, now=NOW + timedelta(minutes=5))
        assert may_be_forced(fresh, now=NOW + DAY)
        later = next_one(fresh, now=NOW + 53 * DAY, expires_in=60 * DAY)
        assert may_be_forced(later, now=NOW + 53 * DAY)

    @pytest.mark.parametrize(
        "state", [a_state(refreshable=False), refused(a_state(), RefreshRefused(message=""), now=NOW)]
    )
    def test_what_cannot_be_refreshed_is_not_forced(self, state: CredentialsState) -> None:
        assert not may_be_forced(state, now=NOW)


class TestFailing:
    @pytest.mark.parametrize("after", [timedelta(0), HOUR], ids=["a post was refused", "the token is over"])
    def test_posts_that_wait_for_long_are_announced_once(self, after: timedelta) -> None:
        """No failure disconnects, however long it lasts and however long a provider asks us to wait."""
        state = a_state(expire_time=HOUR)
        state = replace(state, refresh_time=NOW + after) if after else forced(state, now=NOW)
        now = NOW + after
        notices: list[datetime] = []
        while now < NOW + 30 * DAY:
            match step_at(state, now):
                case Step.REFRESH:
                    later = RefreshDelayed(message="invalid_client", retry_after=HOUR if notices else None)
                    state = delayed(state, later, now=now, draw=0.5)
                case Step.WARN:
                    assert is_failing(state, now=now)
                    notices.append(now - after)
                    state = warned(state)
                case step:
                    raise AssertionError(step)
            assert state.next_time is not None
            now = max(now, state.next_time)
        assert notices == [NOW + timedelta(minutes=15)]

    def test_a_failure_ahead_of_the_end_is_not_announced(self) -> None:
        state = a_state(expire_time=60 * DAY)
        failing = delayed(state, RefreshDelayed(message="down"), now=NOW + 53 * DAY, draw=0.5)
        assert not is_failing(failing, now=NOW + 60 * DAY)
        assert is_failing(failing, now=NOW + 60 * DAY + timedelta(minutes=15))

    def test_failures_of_an_outage_long_ago_do_not_count(self) -> None:
        left_over = replace(forced(a_state(expire_time=HOUR), now=NOW + 9 * DAY), failing_since=NOW)
        failing = delayed(left_over, RefreshDelayed(message="down"), now=NOW + 9 * DAY, draw=0.5)
        assert failing.failing_since == NOW + 9 * DAY

    def test_the_end_of_a_refresh_token_is_announced_after_failures_were(self) -> None:
        state = forced(a_state(expire_time=HOUR, refresh_expire_time=60 * DAY), now=NOW)
        noted = warned(delayed(state, RefreshDelayed(message="down"), now=NOW, draw=0.5))
        after = next_one(noted, now=NOW + HOUR, expires_in=100 * DAY)
        assert not is_failing(after, now=NOW + 2 * HOUR)
        assert step_at(after, NOW + 53 * DAY) is Step.WARN


class TestAsked:
    def test_a_call_has_a_refresh_due_unless_one_is_in_flight(self) -> None:
        state = a_state(expire_time=60 * DAY)
        assert asked_now(state, now=NOW).next_time == NOW
        flying = replace(state, lease_end=NOW + HOUR, next_time=NOW + HOUR, number=3)
        assert asked_now(flying, now=NOW) == flying

    @pytest.mark.parametrize(
        ("asked", "changes", "settled"),
        [
            ({"number": 3}, {"number": 3}, False),
            ({"number": 3}, {"number": 4, "lease_end": NOW + HOUR}, False),
            ({"number": 3}, {"number": 4}, True),
            ({"number": 3, "lease_end": NOW + HOUR}, {"number": 3, "lease_end": NOW + HOUR}, False),
            ({"number": 3, "lease_end": NOW + HOUR}, {"number": 3}, True),
        ],
    )
    def test_a_call_waits_for_the_end_of_that_refresh(
        self, asked: dict[str, Any], changes: dict[str, Any], settled: bool
    ) -> None:
        state = a_state(expire_time=60 * DAY)
        assert is_settled(replace(state, **changes), replace(state, **asked)) is settled


def test_erased_credentials_leave_nothing_but_a_generation() -> None:
    state = erased(replace(a_state(expire_time=HOUR, refresh_expire_time=DAY), number=5, error="x"))
    assert (state.generation, state.number) == (2, 5)
    assert (state.lifetime, state.error, state.next_time) == (Lifetime(), "", None)
    assert erased(state) == state


def test_missing_scopes_are_named_in_their_order() -> None:
    assert missing_scopes(("read", "write", "list"), ("list", "more")) == ("read", "write")
