"""A queue that takes turns over organizations, and within each over accounts: nobody waits behind another's backlog."""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_Accounts = OrderedDict[str, deque[T]]


class TurnQueue(Generic[T]):
    """Keeps the order of arrival within an account."""

    def __init__(self, account_of: Callable[[T], tuple[str, str]]) -> None:
        """`account_of` returns an organization and its account."""
        self._account_of = account_of
        self._organizations: OrderedDict[str, _Accounts[T]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, item: T) -> None:
        organization_id, account_id = self._account_of(item)
        accounts = self._organizations.setdefault(organization_id, OrderedDict())
        accounts.setdefault(account_id, deque()).append(item)
        self._length += 1

    def take(self, most: int) -> list[T]:
        """Takes one item of each organization, then the next of each; within an organization the accounts alternate."""
        taken: list[T] = []
        while self._organizations and len(taken) < most:
            organization_id, accounts = self._organizations.popitem(last=False)
            taken.append(_next_of(accounts))
            if accounts:
                self._organizations[organization_id] = accounts
        self._length -= len(taken)
        return taken

    def take_all(self) -> list[T]:
        return self.take(self._length)

    def drop_newest(self) -> T:
        """Drops and returns the newest item of the account that has most, in the organization that has most."""
        organization_id, accounts = max(self._organizations.items(), key=lambda each: sum(map(len, each[1].values())))
        account_id, items = max(accounts.items(), key=lambda each: len(each[1]))
        dropped = items.pop()
        if not items:
            del accounts[account_id]
        if not accounts:
            del self._organizations[organization_id]
        self._length -= 1
        return dropped


def _next_of(accounts: _Accounts[T]) -> T:
    account_id, items = accounts.popitem(last=False)
    item = items.popleft()
    if items:
        accounts[account_id] = items
    return item
