"""What is said of the accounts of a draft's targets, from events and from Publisher's answers."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.draft import Change
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import Draft
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox

Create = Callable[..., Awaitable[Draft]]
Reflect = Callable[..., Awaitable[None]]
Job = Callable[..., PostJobEvent]
Keep = Callable[..., Awaitable[None]]


def an_account(name: str, state: AccountState = AccountState.CONNECTED, version: int = 1) -> Account:
    return Account(organization_id="org", id=name, version=version, state=state)


def key(request_id: str = "") -> RequestKey:
    return RequestKey(organization_id="org", method="", request_id=request_id, request_digest=b"")


def reasons(draft: Draft) -> dict[str, str]:
    return {each.target.social_account_id: each.state_reason for each in draft.target_states}


@pytest.fixture
def keep(database: Database) -> Keep:
    """`await keep(account, ...)`: one batch of events."""

    async def apply(*accounts: Account) -> None:
        async def work(tx: Transaction) -> None:
            await KeepAccounts()(tx, accounts, await DatabaseClock().now(tx.connection))

        await database.run(work)

    return apply


async def test_an_account_that_publisher_does_not_know_is_told_in_every_answer(
    a_draft: Create,
    approve_draft: ApproveDraft,
    get_draft: GetDraft,
    database: Database,
    outbox: Outbox,
    obstacles: AccountObstacles,
    directory: Any,
) -> None:
    directory.accounts = {"page": an_account("page"), "lost": an_account("lost", AccountState.DISCONNECTED)}
    expected = {"page": "", "lost": "ACCOUNT_NOT_CONNECTED", "pgae": "ACCOUNT_NOT_FOUND"}
    created = await a_draft(accounts=("page", "lost", "pgae"))
    assert reasons(created) == expected
    update = UpdateDraft(
        database=database,
        clock=DatabaseClock(),
        ledger=RequestLedger(),
        outbox=outbox,
        publisher=directory,
        obstacles=obstacles,
    )
    assert reasons((await update(key(), draft_id="draft", etag="", change=Change(text="new"))).draft) == expected
    targets = (Target(social_account_id="pgae", channel="telegram"),)
    moved = (await update(key(), draft_id="draft", etag="", change=Change(targets=targets))).draft
    assert reasons(moved) == {"pgae": "ACCOUNT_NOT_FOUND"}
    approved = (await approve_draft(key(), draft_id="draft", content_digest="", etag="", approver="ann")).draft
    assert reasons(approved) == {"pgae": "ACCOUNT_NOT_FOUND"}
    assert (await get_draft(organization_id="org", draft_id="draft")).draft == approved


async def test_what_publisher_says_of_an_account_counts_until_its_next_event(
    a_draft: Create, get_draft: GetDraft, keep: Keep, directory: Any
) -> None:
    directory.accounts = {"page": an_account("page")}
    await a_draft(accounts=("page", "absent"))
    draft = (await get_draft(organization_id="org", draft_id="draft")).draft
    assert reasons(draft) == {"page": "", "absent": "ACCOUNT_NOT_FOUND"}
    assert directory.asked == ["absent", "page"]
    await keep(an_account("absent"))
    assert reasons((await get_draft(organization_id="org", draft_id="draft")).draft) == {"page": "", "absent": ""}


async def test_an_account_that_comes_to_be_while_it_is_asked_for_is_there(
    a_draft: Create, get_draft: GetDraft, keep: Keep, directory: Any
) -> None:
    directory.accounts, directory.before_answer = {}, lambda: keep(an_account("page"))
    assert reasons(await a_draft(accounts=("page",))) == {"page": "ACCOUNT_NOT_FOUND"}
    assert reasons((await get_draft(organization_id="org", draft_id="draft")).draft) == {"page": ""}


async def test_an_account_is_asked_for_again_when_publisher_was_away(
    a_draft: Create, get_draft: GetDraft, directory: Any
) -> None:
    assert reasons(await a_draft(accounts=("absent",))) == {"absent": ""}
    directory.accounts = {}
    draft = (await get_draft(organization_id="org", draft_id="draft")).draft
    assert reasons(draft) == {"absent": "ACCOUNT_NOT_FOUND"}


async def test_while_publisher_is_away_nothing_is_said_of_unknown_accounts(
    a_draft: Create, keep: Keep, directory: Any
) -> None:
    await keep(an_account("lost", AccountState.DISCONNECTED))
    created = await a_draft(accounts=("lost", "unknown"))
    assert reasons(created) == {"lost": "ACCOUNT_NOT_CONNECTED", "unknown": ""}
    assert directory.asked == ["unknown"]


async def test_the_newest_of_an_account_counts_whatever_the_order(
    a_draft: Create, get_draft: GetDraft, keep: Keep
) -> None:
    await a_draft(accounts=("page",))

    async def now() -> str:
        return reasons((await get_draft(organization_id="org", draft_id="draft")).draft)["page"]

    gone, back = an_account("page", AccountState.DISCONNECTED, 2), an_account("page", version=3)
    await keep(gone, an_account("page"), gone)
    assert await now() == "ACCOUNT_NOT_CONNECTED"
    await keep(back)
    await keep(gone)
    assert await now() == ""


async def test_an_account_of_another_organization_is_another_account(
    a_draft: Create, keep: Keep, directory: Any
) -> None:
    await keep(Account(organization_id="other", id="page", version=1, state=AccountState.CONNECTED))
    directory.accounts = {}
    assert reasons(await a_draft(accounts=("page",))) == {"page": "ACCOUNT_NOT_FOUND"}


async def test_a_job_says_itself_why_it_waits(
    a_draft: Create, get_draft: GetDraft, keep: Keep, reflect: Reflect, a_job: Job, directory: Any
) -> None:
    await keep(an_account("a", AccountState.DISCONNECTED), an_account("b", AccountState.DISCONNECTED))
    await a_draft(accounts=("a", "b"))
    await reflect(
        a_job(JobState.BLOCKED, account="a", state_reason="NOT_APPROVED"), a_job(JobState.PENDING, account="b")
    )
    draft = (await get_draft(organization_id="org", draft_id="draft")).draft
    assert reasons(draft) == {"a": "NOT_APPROVED", "b": "ACCOUNT_NOT_CONNECTED"}
    await reflect(a_job(JobState.PUBLISHED, account="a", version=2), a_job(JobState.FAILED, account="b", version=2))
    draft = (await get_draft(organization_id="org", draft_id="draft")).draft
    assert reasons(draft) == {"a": "", "b": ""}
    assert directory.asked == []
