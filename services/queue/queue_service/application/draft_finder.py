"""Finding the draft that a call schedules, and checking its accounts, before the transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from queue_service.adapters.postgres import connections, drafts
from queue_service.application.account_check import AccountCheck
from queue_service.domain.draft import Draft
from servicekit.faults import DeadlineExceeded, Fault, Unavailable
from servicekit.pg.database import Database


class Drafts(Protocol):
    async def get_draft(self, organization_id: str, draft_id: str, *, is_optional: bool) -> Draft: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDraft:
    """A draft and the accounts that are to get slots: those asked for, or all of its targets'."""

    draft: Draft
    accounts: tuple[str, ...]


class DraftFinder:
    def __init__(self, *, database: Database, drafts: Drafts, check_accounts: AccountCheck) -> None:
        self._database = database
        self._drafts = drafts
        self._check_accounts = check_accounts

    async def __call__(self, organization_id: str, draft_id: str, asked: Sequence[str]) -> FoundDraft | Fault:
        """Returns faults instead of raising them: a repeated request gets its first answer, even if this fails now."""
        try:
            draft = await self._find(organization_id, draft_id, asked)
            accounts = draft.accounts(asked)
        except Fault as fault:
            return fault
        async with self._database.read() as connection:
            connected = await connections.find_connected(connection, organization_id, accounts)
        refusal = await self._check_accounts(organization_id, accounts, connected=connected)
        return refusal or FoundDraft(draft=draft, accounts=accounts)

    async def _find(self, organization_id: str, draft_id: str, asked: Sequence[str]) -> Draft:
        """Reads the draft from Queue's own table if that has the accounts asked for, else from Drafts.

        Drafts may have a change that has not been announced here yet, and only Drafts knows all accounts. While it is
        down, the table is used.
        """
        async with self._database.read() as connection:
            known = await drafts.find_draft(connection, organization_id, draft_id)
        is_enough = known is not None and known.has_all(asked)
        if known and asked and is_enough:
            return known
        try:
            return await self._drafts.get_draft(organization_id, draft_id, is_optional=is_enough)
        except (Unavailable, DeadlineExceeded):
            if known and is_enough:
                return known
            raise
