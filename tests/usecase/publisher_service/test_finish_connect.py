"""FinishConnect exchanges a code once, no matter what dies or is repeated, and stores the account that is meant."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from publisher_service.domain.connecting import StartedSession
from servicekit import failpoints
from servicekit.faults import Fault
from testkit.eventually import eventually
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.visiting import Visiting


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.install("", "test")


async def refused(awaited: Any) -> str:
    with pytest.raises(Fault) as fault:
        await awaited
    return fault.value.reason


async def test_the_account_is_stored_as_if_it_had_been_connected(visiting: Visiting) -> None:
    started = await visiting.start(account="page", display_name="The page")
    code = await visiting.agree(started, "p1", rotating="true")
    account = (await visiting.finish(started, code)).account
    assert account is not None
    assert (account.id, account.external_account_id, account.display_name, account.version) == (
        "page",
        "p1",
        "The page",
        1,
    )
    assert account.credentials is not None
    assert account.credentials.can_refresh
    assert account.credentials.lifetime.scopes == ("posts.write", "posts.read")
    assert (await visiting.office.row("page")).connected
    await visiting.office.make_due("page")
    await visiting.office.run()
    assert (await visiting.office.row("page")).generation == 2


async def test_a_new_account_gets_an_id_and_the_name_that_it_has_there(visiting: Visiting) -> None:
    started = await visiting.start()
    account = (await visiting.finish(started, await visiting.agree(started, "p1"))).account
    assert account is not None
    assert account.id
    assert account.display_name == "Sandbox account p1"


async def test_several_accounts_are_a_choice_that_needs_no_second_code(visiting: Visiting) -> None:
    started = await visiting.start()
    code = await visiting.agree(started, "p1", "p2")
    choice = await visiting.finish(started, code)
    assert choice.account is None
    assert [each.external_account_id for each in choice.candidates] == ["p1", "p2"]
    assert all("facebook" in each.channels for each in choice.candidates)
    assert await refused(visiting.finish(started, "", name="p3")) == "ACCOUNT_NOT_GRANTED"
    account = (await visiting.finish(started, "", name="p2")).account
    assert account is not None
    assert account.external_account_id == "p2"
    assert visiting.exchanges() == [code]
    assert await refused(visiting.finish(started, "", name="p1")) == "STATE_USED"


async def test_what_was_granted_is_erased_once_it_is_used(visiting: Visiting) -> None:
    started = await visiting.start()
    await visiting.finish(started, await visiting.agree(started, "p1", "p2"))
    (session,) = await visiting.sessions()
    assert session.state == "GRANTED"
    assert b"sandbox-family" not in session.sealed
    await visiting.finish(started, "", name="p1")
    (session,) = await visiting.sessions()
    assert (session.state, session.sealed) == ("ENDED", b"")


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after the other"])
async def test_a_repeated_call_exchanges_the_code_once(visiting: Visiting, at_once: bool) -> None:
    started = await visiting.start(account="page")
    code = await visiting.agree(started, "p1")
    await visiting.office.sandbox.faults({"fault": "slow", "operation": "token", "seconds": 0.3})
    if at_once:
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(visiting.finish(started, code, request_id="r1")) for _ in range(4)]
        answers = [each.result() for each in calls]
    else:
        answers = [await visiting.finish(started, code, request_id="r1") for _ in range(2)]
    assert len({answer.account.version for answer in answers if answer.account}) == 1
    assert all(answer == answers[0] for answer in answers)
    assert visiting.exchanges() == [code]


async def give_up(visiting: Visiting, started: StartedSession, code: str, request_id: str = "") -> None:
    """Begins to finish a visit, and is gone before the provider answers."""
    await visiting.office.sandbox.faults({"fault": "slow", "operation": "token", "seconds": 0.5})
    async with asyncio.TaskGroup() as group:
        calling = group.create_task(visiting.finish(started, code, request_id=request_id))
        await eventually(lambda: bool(visiting.finish_connect._exchanges))
        calling.cancel()
    (session,) = await visiting.sessions()
    assert session.state == "EXCHANGING"


@pytest.mark.parametrize("request_id", ["r1", ""], ids=["repeated", "another call"])
async def test_a_caller_who_gives_up_does_not_lose_the_code(visiting: Visiting, request_id: str) -> None:
    started = await visiting.start(account="page")
    code = await visiting.agree(started, "p1")
    await give_up(visiting, started, code, request_id)
    account = (await visiting.finish(started, code, request_id=request_id)).account
    assert account is not None
    assert visiting.exchanges() == [code]


async def test_an_exchange_may_end_when_its_process_does(visiting: Visiting) -> None:
    started = await visiting.start(account="page")
    code = await visiting.agree(started, "p1")
    await give_up(visiting, started, code)
    await visiting.finish_connect.close()
    (session,) = await visiting.sessions()
    assert session.state == "GRANTED"


async def test_two_calls_of_one_visit_connect_one_account(visiting: Visiting) -> None:
    started = await visiting.start(account="page")
    code = await visiting.agree(started, "p1")

    async def finish(request_id: str) -> str:
        try:
            await visiting.finish(started, code, request_id=request_id)
        except Fault as fault:
            return fault.reason
        return "OK"

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(finish(f"r{number}")) for number in range(3)]
    assert sorted(each.result() for each in calls) == ["OK", "STATE_USED", "STATE_USED"]
    assert visiting.exchanges() == [code]


@pytest.mark.parametrize(
    ("step", "outcome", "seen"), [("begun", "STATE_USED", 0), ("granted", "OK", 1), ("committed", "OK", 1)]
)
async def test_a_death_at_any_step_never_presents_a_code_twice(
    visiting: Visiting, step: str, outcome: str, seen: int
) -> None:
    started = await visiting.start(account="page")
    code = await visiting.agree(started, "p1")
    failpoints.install(f"publisher.finish_connect.{step}=raise:once", "test")
    with pytest.raises(failpoints.FailpointHit):
        await visiting.finish(started, code, request_id="r1")
    await visiting.office.replica.write("update connect_session set exchange_end = now()")
    if outcome == "OK":
        account = (await visiting.finish(started, code, request_id="r1")).account
        assert account is not None
        assert account.version == 1
    else:
        assert await refused(visiting.finish(started, code, request_id="r1")) == outcome
    assert len(visiting.exchanges()) == seen


async def test_missing_scopes_are_named_and_end_the_visit(visiting: Visiting) -> None:
    started = await visiting.start()
    code = await visiting.agree(started, "p1", granted="posts.read")
    with pytest.raises(Fault) as fault:
        await visiting.finish(started, code)
    assert (fault.value.reason, fault.value.metadata) == ("SCOPES_MISSING", {"scopes": "posts.write"})
    assert await refused(visiting.finish(started, code)) == "STATE_USED"
    assert await visiting.office.replica.rows("select 1 from social_account") == []


async def test_a_state_is_good_for_its_organization_alone(visiting: Visiting) -> None:
    started = await visiting.start()
    code = await visiting.agree(started, "p1")
    assert await refused(visiting.finish(started, code, organization="other")) == "STATE_NOT_FOUND"
    assert visiting.exchanges() == []
    assert (await visiting.finish(started, code)).account is not None


async def test_a_state_expires(visiting: Visiting) -> None:
    started = await visiting.start()
    code = await visiting.agree(started, "p1")
    await visiting.office.replica.write("update connect_session set expire_time = now()")
    assert await refused(visiting.finish(started, code)) == "STATE_EXPIRED"
    assert visiting.exchanges() == []


async def test_a_wrong_code_is_refused_and_ends_the_visit(visiting: Visiting) -> None:
    started = await visiting.start()
    assert await refused(visiting.finish(started, "")) == "INVALID_FIELD"
    assert await refused(visiting.finish(started, "wrong")) == "CODE_REFUSED"
    assert await refused(visiting.finish(started, "wrong")) == "STATE_USED"


@pytest.mark.parametrize(
    ("fault", "then"),
    [
        ({"fault": "status", "status": 429}, "OK"),
        ({"fault": "status"}, "STATE_USED"),
        ({"fault": "garbage"}, "STATE_USED"),
    ],
    ids=["429", "503", "garbage"],
)
async def test_a_code_that_may_have_been_used_is_not_presented_again(
    visiting: Visiting, fault: dict[str, object], then: str
) -> None:
    started = await visiting.start()
    code = await visiting.agree(started, "p1")
    await visiting.office.sandbox.faults({**fault, "operation": "token", "count": 1})
    assert await refused(visiting.finish(started, code)) == "PROVIDER_UNAVAILABLE"
    if then == "OK":
        assert (await visiting.finish(started, code)).account is not None
    else:
        assert await refused(visiting.finish(started, code)) == then
        assert len(visiting.exchanges()) == 1


async def test_a_visit_may_connect_a_known_account_again(visiting: Visiting) -> None:
    await visiting.office.connect("page", external="p1")
    started = await visiting.start(account="page")
    account = (await visiting.finish(started, await visiting.agree(started, "p1"))).account
    assert account is not None
    assert (account.id, account.version, account.display_name) == ("page", 2, "")


async def test_an_account_that_is_connected_elsewhere_leaves_the_choice(visiting: Visiting) -> None:
    await visiting.office.connect("page", external="p1")
    started = await visiting.start()
    code = await visiting.agree(started, "p1", "p2")
    with pytest.raises(Fault) as fault:
        await visiting.finish(started, code, name="p1")
    assert fault.value.reason == "ACCOUNT_CONNECTED_ELSEWHERE"
    assert fault.value.metadata == {"social_account_id": "page"}
    assert (await visiting.finish(started, "", name="p2")).account is not None


async def test_a_disconnection_ends_the_visits_of_its_account(visiting: Visiting) -> None:
    await visiting.office.connect("page", external="p1")
    started = await visiting.start(account="page")
    code = await visiting.agree(started, "p1")
    await disconnect(visiting.office.replica, "page")
    assert await visiting.sessions() == []
    assert await refused(visiting.finish(started, code)) == "STATE_NOT_FOUND"


async def test_no_secret_of_a_visit_stands_in_a_row_or_a_log(
    visiting: Visiting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    started = await visiting.start(request_id="r1")
    code = await visiting.agree(started, "p1", "p2", rotating="true")
    await visiting.finish(started, code, request_id="r2")
    await visiting.finish(started, "", name="p1", request_id="r3")
    tokens = [line for line in visiting.office.sandbox.ledger() if line["kind"] == "token"]
    secrets = [started.state, code, *(f"sandbox-family-{line['family']}-0" for line in tokens)]
    shown = [caplog.text]
    for table in ("connect_session", "request_ledger", "outbox", "social_account", "credential"):
        rows = await visiting.office.replica.rows(f"select t::text as shown from {table} t")  # noqa: S608
        shown += [row.shown for row in rows]
    assert not [secret for secret in secrets for text in shown if secret in text or secret.encode().hex() in text]
