import asyncio
from collections import Counter

from benchmarks.callers import ACCOUNTS, ORGANIZATIONS, accounts, made


def test_accounts_belong_to_organizations_of_different_sizes() -> None:
    sizes = Counter(account.organization_id for account in accounts())
    assert sizes.total() == ACCOUNTS
    assert len({account.id for account in accounts()}) == ACCOUNTS
    assert ORGANIZATIONS * 0.8 < len(sizes) <= ORGANIZATIONS
    assert sizes["org-0"] == max(sizes.values()) > 5 * min(sizes.values())


async def test_each_call_is_made_once_by_so_many_callers() -> None:
    running, most, numbers = 0, 0, list[int]()

    async def call(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        numbers.append(number)
        await asyncio.sleep(0)
        running -= 1

    await made(20, 4, call, first=5)
    assert (sorted(numbers), most) == (list(range(5, 25)), 4)
