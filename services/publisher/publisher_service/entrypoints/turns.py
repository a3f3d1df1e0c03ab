"""Work that is due, taken in turn over organizations, and within each over accounts: nobody waits behind a heap."""

from collections import OrderedDict, deque

from publisher_service.entrypoints.work import Work

_Accounts = OrderedDict[str, deque[Work]]


class TurnQueue:
    """In the order of arrival within an account."""

    def __init__(self) -> None:
        self._organizations: OrderedDict[str, _Accounts] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, work: Work) -> None:
        organization_id, account_id = work.account
        accounts = self._organizations.setdefault(organization_id, OrderedDict())
        accounts.setdefault(account_id, deque()).append(work)
        self._length += 1

    def take(self, most: int) -> list[Work]:
        """The next ones: one of each organization, then again, and within an organization one of each account."""
        taken: list[Work] = []
        while self._organizations and len(taken) < most:
            organization_id, accounts = self._organizations.popitem(last=False)
            taken.append(_next_of(accounts))
            if accounts:
                self._organizations[organization_id] = accounts
        self._length -= len(taken)
        return taken

    def take_all(self) -> list[Work]:
        return self.take(self._length)


def _next_of(accounts: _Accounts) -> Work:
    account_id, works = accounts.popitem(last=False)
    work = works.popleft()
    if works:
        accounts[account_id] = works
    return work
