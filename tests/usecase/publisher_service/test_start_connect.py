"""StartConnect begins a visit, of which only who asked for it knows the state."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from publisher_service.adapters.postgres.connect_sessions import state_digest
from servicekit.faults import Fault
from tests.usecase.publisher_service.visiting import BACK, Visiting


async def test_a_visit_has_a_challenge_and_an_end(visiting: Visiting) -> None:
    started = await visiting.start()
    query = parse_qs(urlsplit(started.authorization_url).query)
    assert (query["state"], query["redirect_uri"]) == ([started.state], [BACK])
    assert query["code_challenge_method"] == ["S256"]
    (session,) = await visiting.sessions()
    assert session.state_digest == state_digest(started.state)
    left = started.expire_time - await visiting.office.now()
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)


async def test_a_repeated_call_gets_the_same_page_and_no_other_visit(visiting: Visiting) -> None:
    started = await visiting.start(request_id="r1")
    assert await visiting.start(request_id="r1") == started
    assert len(await visiting.sessions()) == 1
    assert (await visiting.start(request_id="r2")).state != started.state


async def test_neither_state_nor_verifier_is_stored_in_plain(visiting: Visiting) -> None:
    started = await visiting.start(request_id="r1")
    assert started.state not in repr(started)
    for table in ("connect_session", "request_ledger", "outbox"):
        for row in await visiting.office.replica.rows(f"select t::text as shown from {table} t"):  # noqa: S608
            assert started.state not in row.shown
            assert started.state.encode().hex() not in row.shown


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"provider": "myspace"}, "UNKNOWN_PROVIDER"),
        ({"redirect_uri": f"{BACK}/"}, "REDIRECT_URI_NOT_ALLOWED"),
        ({"redirect_uri": "https://evil.example.com/"}, "REDIRECT_URI_NOT_ALLOWED"),
        ({"settings": {"host": "x"}}, "UNKNOWN_SETTING"),
    ],
)
async def test_a_visit_that_cannot_end_does_not_begin(visiting: Visiting, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Fault) as refused:
        await visiting.start(**changes)
    assert refused.value.reason == reason
    assert await visiting.sessions() == []


async def test_an_account_of_another_provider_is_refused(visiting: Visiting) -> None:
    await visiting.office.connect("page")
    await visiting.office.replica.write("update social_account set provider = 'another'")
    with pytest.raises(Fault) as refused:
        await visiting.start(account="page")
    assert refused.value.reason == "PROVIDER_CHANGED"
