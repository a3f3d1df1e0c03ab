"""The reasons that accounts give for targets, from events and from Publisher's answers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.draft import Change
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_service_pb2 import ApproveDraftResponse, UpdateDraftResponse
from servicekit.pg.database import Database
from servicekit.run import is_transient

Update = Callable[..., Coroutine[Any, Any, UpdateDraftResponse]]
Get = Callable[..., Awaitable[Draft]]
Approve = Callable[..., Coroutine[Any, Any, ApproveDraftResponse]]
ADraft = Callable[..., Awaitable[Draft]]
Keep = Callable[..., Awaitable[None]]


def an_account(name: str, state: AccountState = AccountState.CONNECTED, version: int = 1) -> Account:
    return Account(organization_id="org", id=name, version=version, state=state, provider="sandbox")


def reasons(draft: Draft) -> dict[str, str]:
    return {each.target.social_account_id: each.state_reason for each in draft.target_states}


async def test_an_account_unknown_to_publisher_is_named_in_every_answer(
    a_draft: ADraft, update_draft: Update, approve_draft: Approve, get_draft: Get, publisher: Any, directory: Any
) -> None:
    directory.accounts = {"page": an_account("page"), "lost": an_account("lost", AccountState.DISCONNECTED)}
    expected = {"page": "", "lost": "ACCOUNT_NOT_CONNECTED", "pgae": "ACCOUNT_NOT_FOUND"}
    created = await a_draft(accounts=("page", "lost", "pgae"))
    assert reasons(created) == expected
    assert reasons((await update_draft(change=Change(text="new"))).draft) == expected
    targets = (Target(social_account_id="pgae", channel="telegram"),)
    moved = (await update_draft(change=Change(targets=targets))).draft
    assert reasons(moved) == {"pgae": "ACCOUNT_NOT_FOUND"}
    approved = (await approve_draft()).draft
    assert reasons(approved) == {"pgae": "ACCOUNT_NOT_FOUND"}
    assert await get_draft() == approved
    assert publisher.asked == []


async def test_publishers_answer_about_an_account_counts_until_its_next_event(
    a_draft: ADraft, get_draft: Get, keep: Keep, directory: Any
) -> None:
    directory.accounts = {"page": an_account("page")}
    await a_draft(accounts=("page", "absent"))
    draft = await get_draft()
    assert reasons(draft) == {"page": "", "absent": "ACCOUNT_NOT_FOUND"}
    assert directory.asked == ["absent", "page"]
    await keep(an_account("absent"))
    assert reasons(await get_draft()) == {"page": "", "absent": ""}


async def test_an_event_that_overtakes_publishers_answer_wins(
    a_draft: ADraft, get_draft: Get, keep: Keep, directory: Any
) -> None:
    directory.accounts, directory.before_answer = {}, lambda: keep(an_account("page"))
    assert reasons(await a_draft(accounts=("page",))) == {"page": ""}
    assert reasons(await get_draft()) == {"page": ""}


async def test_an_account_seen_before_is_looked_up_again_for_each_draft(
    a_draft: ADraft, keep: Keep, directory: Any
) -> None:
    directory.accounts = {}
    assert reasons(await a_draft("one", accounts=("page",))) == {"page": "ACCOUNT_NOT_FOUND"}
    await keep(an_account("page", AccountState.DISCONNECTED))
    assert reasons(await a_draft("two", accounts=("page",))) == {"page": "ACCOUNT_NOT_CONNECTED"}
    await keep(an_account("page", version=2))
    assert reasons(await a_draft("three", accounts=("page",))) == {"page": ""}
    assert directory.asked == ["page"]


async def test_unknown_accounts_have_no_reason_while_publisher_is_down(
    a_draft: ADraft, keep: Keep, directory: Any
) -> None:
    await keep(an_account("lost", AccountState.DISCONNECTED))
    created = await a_draft(accounts=("lost", "unknown"))
    assert reasons(created) == {"lost": "ACCOUNT_NOT_CONNECTED", "unknown": ""}
    assert directory.asked == ["unknown"]


async def test_an_account_of_another_organization_is_another_account(
    a_draft: ADraft, keep: Keep, directory: Any
) -> None:
    await keep(Account(organization_id="other", id="page", version=1, state=AccountState.CONNECTED))
    directory.accounts = {}
    assert reasons(await a_draft(accounts=("page",))) == {"page": "ACCOUNT_NOT_FOUND"}


async def test_callers_of_a_lost_database_fail_together(directory: Any) -> None:
    """One after the other each would wait for a timeout of its own."""
    connections = 0

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        database = Database(f"postgresql://u@127.0.0.1:{port}/d?sslmode=disable", application="test")
        find = AccountObstacles(database=database, directory=directory).find
        async with asyncio.TaskGroup() as group:
            failed = [group.create_task(has_failed(find("org", [f"{each}"]))) for each in range(9)]
        await database.dispose()
    assert all(each.result() for each in failed)
    assert connections == 1


async def has_failed(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except Exception as error:
        if not is_transient(error):
            raise
        return True
    return False
