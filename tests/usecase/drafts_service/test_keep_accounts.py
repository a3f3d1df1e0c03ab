from collections.abc import Awaitable, Callable

from drafts_service.domain.account import Account, AccountState
from postflow.drafts.v1.draft_pb2 import Draft

ADraft = Callable[..., Awaitable[Draft]]
Get = Callable[..., Awaitable[Draft]]
Keep = Callable[..., Awaitable[None]]


def page(version: int, state: AccountState = AccountState.CONNECTED) -> Account:
    return Account(organization_id="org", id="page", version=version, state=state)


async def test_the_newest_event_of_an_account_wins_in_any_order(a_draft: ADraft, get_draft: Get, keep: Keep) -> None:
    await a_draft(accounts=("page",))

    async def now() -> str:
        (target,) = (await get_draft()).target_states
        return target.state_reason

    gone, back = page(2, AccountState.DISCONNECTED), page(3)
    await keep(gone, page(1), gone)
    assert await now() == "ACCOUNT_NOT_CONNECTED"
    await keep(back)
    await keep(gone)
    assert await now() == ""
