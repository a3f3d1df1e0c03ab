"""A visit to a provider goes on while it is open, and ends with one of the accounts that were granted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher_service.domain.connecting import (
    Candidate,
    Grant,
    Return,
    Session,
    SessionState,
    StartedSession,
    WantedSession,
    chosen,
    require_open,
    session_place,
)
from publisher_service.domain.credentials import Credentials
from servicekit.faults import Fault

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WANTED = WantedSession(
    organization_id="acme",
    provider="sandbox",
    redirect_uri="https://app.example.com/back",
    account_id="",
    display_name="",
    channels=(),
    settings={},
)
SESSION = Session(wanted=WANTED, state=SessionState.STARTED, expire_time=NOW + timedelta(minutes=10))


def candidate(name: str) -> Candidate:
    return Candidate(external_account_id=name, name=name, credentials=Credentials(access_token="t"))


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (None, "STATE_NOT_FOUND"),
        (replace(SESSION, state=SessionState.ENDED), "STATE_USED"),
        (replace(SESSION, expire_time=NOW), "STATE_EXPIRED"),
        (replace(SESSION, expire_time=NOW, state=SessionState.ENDED), "STATE_USED"),
    ],
)
def test_a_visit_that_is_not_open_says_why(session: Session | None, reason: str) -> None:
    with pytest.raises(Fault) as refused:
        require_open(session, now=NOW)
    assert refused.value.reason == reason


def test_an_open_visit_goes_on() -> None:
    assert require_open(SESSION, now=NOW) is SESSION


def test_one_account_needs_no_choice_and_several_do() -> None:
    one, two = candidate("a"), candidate("b")
    assert chosen(Grant(candidates=[one]), "") is one
    assert chosen(Grant(candidates=[one, two]), "") is None
    assert chosen(Grant(candidates=[one, two]), "b") is two


@pytest.mark.parametrize(
    ("names", "wanted", "reason"), [([], "", "NO_ACCOUNT_GRANTED"), (["a"], "b", "ACCOUNT_NOT_GRANTED")]
)
def test_an_account_that_was_not_granted_is_refused(names: list[str], wanted: str, reason: str) -> None:
    with pytest.raises(Fault) as refused:
        chosen(Grant(candidates=[candidate(name) for name in names]), wanted)
    assert refused.value.reason == reason


def test_no_secret_of_a_visit_is_shown() -> None:
    started = StartedSession(authorization_url="https://x/?state=secret-state", state="secret-state", expire_time=NOW)
    back = Return(state="secret-state", code="secret-code", external_account_id="")
    assert "secret" not in f"{started!r} {back!r}"


def test_the_secrets_of_a_visit_belong_to_its_organization() -> None:
    assert session_place("acme", b"\x01") != session_place("other", b"\x01")
