"""Credentials that are due are refreshed once, fairly, with a journal; what nothing can renew is announced and ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.adapter import CredentialsRefused
from publisher_service.domain.refresh import PATIENCE
from servicekit import failpoints
from tests.usecase.publisher_service.renewing import HOUR, Renewing

DAY = timedelta(days=1)


async def test_a_due_account_gets_the_next_pair_and_generation(office: Renewing) -> None:
    pair = await office.issue("page", rotating=True)
    await office.connect("page", pair)
    assert await office.run() == 0
    await office.make_due("page")
    assert await office.run() == 1
    row, credentials = await office.row("page"), await office.credentials("page")
    assert (row.generation, row.account_state, row.version, row.failures) == (2, "CONNECTED", 1, 0)
    assert credentials.access_token != pair["access_token"]
    assert credentials.refresh_token != pair["refresh_token"]
    assert row.expire_time - await office.now() > timedelta(minutes=59)
    assert row.next_time == row.refresh_time
    assert await office.journal("page") == [(1, "DONE")]
    await office.providers["sandbox"].verify("acme", "ext-page", credentials, {})


async def test_the_intention_is_committed_before_the_request(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"))
    await office.make_due("page")
    failpoints.install("publisher.refresh.taken=raise:once", "development")
    with pytest.raises(failpoints.FailpointHit):
        await office.run()
    assert await office.journal("page") == [(1, "INTENT")]
    assert office.presented("page") == []
    row = await office.row("page")
    assert row.next_time == row.lease_end
    assert await office.run() == 0


async def test_a_taken_account_is_due_again_when_its_lease_ends(office: Renewing, branch: Renewing) -> None:
    await office.connect("page", await office.issue("page", rotating=True))
    await office.make_due("page")
    (lost,) = await office.take()
    assert await branch.take() == []
    await office.move("page", next_time=timedelta(minutes=1), lease_end=timedelta(minutes=1))
    assert await branch.run() == 1
    assert (await office.row("page")).generation == 2
    assert await office.journal("page") == [(1, "INTENT"), (1, "DONE")]
    assert lost.due.state.generation == 1


async def test_a_process_that_stood_still_does_not_ask(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"))
    await office.make_due("page")
    (taken,) = await office.take()
    await office.refresh(replace(taken, began=taken.began - 60))
    assert office.presented("page") == []
    assert await office.journal("page") == [(1, "FAILED")]


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "status", "status": 503},
        {"fault": "status", "status": 429, "retry_after": 60},
        {"fault": "status", "status": 400},
        {"fault": "garbage"},
        {"fault": "reset_before_effect"},
        {"fault": "hang_without_effect"},
    ],
    ids=lambda fault: "-".join(map(str, fault.values())),
)
async def test_what_is_no_definite_refusal_never_disconnects(office: Renewing, fault: dict[str, object]) -> None:
    pair = await office.issue("page")
    await office.connect("page", pair, expires=timedelta(seconds=90))
    await office.make_due("page")
    await office.sandbox.faults({**fault, "operation": "token", "count": 1})
    assert await office.run() == 1
    row = await office.row("page")
    assert (row.account_state, row.generation, row.failures) == ("CONNECTED", 1, 1)
    assert row.error
    assert row.next_time > await office.now()
    assert (await office.credentials("page")).access_token == pair["access_token"]
    await office.move("page", expire_time=HOUR)
    await office.make_due("page")
    assert await office.run() == 1
    row = await office.row("page")
    assert (row.account_state, row.generation, row.error) == ("CONNECTED", 2, "")
    assert await office.journal("page") == [(1, "FAILED"), (1, "DONE")]


async def test_posts_that_wait_for_a_failing_refresh_are_announced(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"))
    await office.replica.write("update credential set is_urgent = true")
    await office.make_due("page")
    await office.sandbox.faults({"fault": "status", "status": 400, "operation": "token", "count": 2})
    assert await office.run() == 1
    assert await office.notices() == []
    await office.move("page", failing_since=PATIENCE)
    await office.make_due("page")
    assert await office.run() == 2  # the refresh, and the warning
    (notice,) = await office.notices()
    row = await office.row("page")
    assert (notice.is_failing, notice.HasField("expire_time"), notice.version) == (True, False, row.version)
    assert notice.social_account.credentials_info.refresh_error
    assert (row.account_state, row.is_warned, row.failures) == ("CONNECTED", True, 2)
    await office.make_due("page")
    assert await office.run() == 1
    row = await office.row("page")
    assert (row.generation, row.is_warned, row.failures, row.failing_since) == (2, False, 0, None)
    assert len(await office.notices()) == 1


async def test_a_refusal_warns_and_disconnects_at_the_end_of_the_token(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"))
    await office.sandbox.revoke_tokens("ext-page")
    await office.make_due("page")
    assert await office.run() == 2  # the refresh, and the warning
    row = await office.row("page")
    assert (row.account_state, row.is_refused, row.is_warned, row.connected) == ("CONNECTED", True, True, True)
    (notice,) = await office.notices()
    assert "not valid" in notice.social_account.credentials_info.refresh_error
    assert notice.version == row.version == 2
    assert not notice.social_account.credentials_info.is_refreshable
    assert await office.run() == 0
    await office.move("page", expire_time=HOUR, next_time=HOUR)
    assert await office.run() == 1
    row = await office.row("page")
    assert (row.account_state, row.state_reason, row.connected) == ("DISCONNECTED", "CREDENTIALS_EXPIRED", False)
    assert "not valid" in row.error_message
    assert row.next_time is None


async def test_a_token_that_nothing_refreshes_is_announced_once_and_ends(office: Renewing) -> None:
    await office.connect("page", expires=60 * DAY)
    assert await office.run() == 0
    await office.move("page", expire_time=53 * DAY, next_time=53 * DAY)
    assert await office.run() == 1
    (notice,) = await office.notices()
    row = await office.row("page")
    assert notice.expire_time.ToDatetime(row.expire_time.tzinfo) == row.expire_time
    assert (notice.organization_id, notice.social_account.id) == ("acme", "page")
    assert (row.account_state, row.version) == ("CONNECTED", 2)
    await office.move("page", expire_time=7 * DAY, next_time=7 * DAY)
    assert await office.run() == 1
    row = await office.row("page")
    assert (row.account_state, row.state_reason) == ("DISCONNECTED", "CREDENTIALS_EXPIRED")
    assert len(await office.notices()) == 1
    assert await office.journal("page") == []


async def test_a_new_connection_is_announced_for_itself(office: Renewing) -> None:
    await office.connect("page", expires=DAY)
    await office.run()
    await office.connect("page", expires=2 * DAY)
    await office.run()
    assert [notice.social_account.credentials_info.generation for notice in await office.notices()] == [1, 2]


async def test_the_end_of_a_refresh_token_is_announced(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"), expires=DAY, refresh_expires=6 * DAY)
    assert await office.run() == 1
    (notice,) = await office.notices()
    row = await office.row("page")
    assert notice.expire_time.ToDatetime(row.expire_time.tzinfo) == row.refresh_expire_time
    assert row.next_time == row.refresh_time


async def test_a_refresh_token_that_ends_for_good_counts_down(office: Renewing) -> None:
    await office.connect("page", await office.issue("page", refresh_seconds=30 * DAY.total_seconds()))
    await office.make_due("page")
    await office.run()
    row = await office.row("page")
    assert timedelta(days=29) < row.refresh_expire_time - await office.now() < timedelta(days=30)


async def test_a_large_organization_does_not_keep_others_waiting(office: Renewing) -> None:
    for number in range(12):
        name = f"a{number}"
        await office.connect(name, await office.issue(name), organization="large")
    await office.connect("z", await office.issue("z"), organization="small")
    await office.make_due(*(f"a{number}" for number in range(12)), "z")
    # They have been due for longer.
    for number in range(12):
        await office.move(f"a{number}", next_time=HOUR, refresh_time=HOUR)
    assert {each.due.organization_id for each in await office.take(room=4)} == {"large", "small"}


async def test_in_safe_mode_nothing_is_refreshed(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"))
    await office.make_due("page")
    await office.replica.write(
        "insert into safe_mode (number, reason, step, enter_time, active)"
        " values (1, 'MARK_AHEAD', 'EVENTS', now(), true)"
    )
    assert await office.take() == []
    await office.replica.write("update safe_mode set active = false, leave_time = now()")
    assert await office.run() == 1


async def test_an_account_of_another_release_is_not_ended_by_older_facts(office: Renewing) -> None:
    """Another release, which does not know the table, has connected the account again."""
    await office.connect("page", expires=DAY)
    sealed = office.replica.vault.seal(await office.credentials("page"), organization_id="acme", account_id="page")
    await office.replica.write("update social_account set credentials = :sealed, version = version + 1", sealed=sealed)
    await office.move("page", expire_time=2 * DAY, next_time=10 * DAY)
    assert await office.run() == 1
    row = await office.row("page")
    assert (row.account_state, row.expire_time, row.next_time) == ("CONNECTED", None, None)


async def test_a_key_that_is_missing_delays_and_loses_nothing(office: Renewing) -> None:
    await office.connect("page", await office.issue("page"))
    await office.replica.write("update social_account set credentials = decode('030231', 'hex') || credentials")
    await office.make_due("page")
    assert await office.run() == 1
    assert office.presented("page") == []
    assert (await office.row("page")).account_state == "CONNECTED"


async def test_no_secret_stands_in_a_row_a_log_or_a_repr(office: Renewing, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    pair = await office.issue("page", rotating=True)
    await office.connect("page", pair)
    await office.make_due("page")
    (taken,) = await office.take()
    await office.refresh(taken)
    new = await office.credentials("page")
    await office.sandbox.revoke_tokens("ext-page")
    await office.make_due("page")
    await office.run()
    with pytest.raises(CredentialsRefused):
        await office.providers["sandbox"].verify("acme", "ext-page", new, {})
    secrets = [pair["access_token"], pair["refresh_token"], *new.secrets]
    shown = [repr(taken), caplog.text, *(repr(record.__dict__) for record in caplog.records)]
    for table in ("social_account", "credential", "credential_refresh", "outbox", "request_ledger"):
        shown += [row.shown for row in await office.replica.rows(f"select t::text as shown from {table} t")]  # noqa: S608
    assert not [secret for secret in secrets for text in shown if secret in text or secret.encode().hex() in text]
