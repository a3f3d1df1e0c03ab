"""Finding the draft that a call schedules, and checking its accounts, before the transaction.

Calls that are in flight at the same time share the statements.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Protocol

from queue_service.adapters.postgres.connections import find_connected
from queue_service.adapters.postgres.drafts import find_drafts
from queue_service.application.account_check import AccountCheck
from queue_service.domain.account import AccountKey
from queue_service.domain.draft import Draft, DraftKey, KnownDraft
from servicekit.faults import DeadlineExceeded, Fault, Unavailable
from servicekit.gathering import Gathering
from servicekit.pg.database import Database
from servicekit.record import record
from servicekit.run.transient import is_transient


class Drafts(Protocol):
    async def get_draft(self, organization_id: str, draft_id: str, *, is_optional: bool) -> Draft: ...


@record(frozen=True, slots=True, kw_only=True)
class FoundDraft:
    """A draft and the accounts that are to get slots: those asked for, or all of its targets'."""

    draft: Draft
    accounts: tuple[str, ...]


class DraftFinder:
    def __init__(self, *, database: Database, drafts: Drafts, check_accounts: AccountCheck) -> None:
        self._database = database
        self._drafts = drafts
        self._check_accounts = check_accounts
        self._known = Gathering[DraftKey, KnownDraft | None](self._read_drafts, share=itemgetter(0), is_shared=_is_down)
        self._connected = Gathering[Sequence[AccountKey], frozenset[str]](
            self._read_connected, share=lambda accounts: accounts[0][0], is_shared=_is_down
        )

    async def __call__(self, organization_id: str, draft_id: str, asked: Sequence[str]) -> FoundDraft | Fault:
        """Returns faults instead of raising them: a repeated request gets its first answer, even if this fails now."""
        try:
            found = await self._find((organization_id, draft_id), asked)
            accounts = found.draft.accounts(asked)
        except Fault as fault:
            return fault
        connected = found.connected
        if unclear := [(organization_id, account) for account in accounts if account not in connected]:
            connected |= await self._connected(unclear)
        refusal = await self._check_accounts(organization_id, accounts, connected=connected)
        return refusal or FoundDraft(draft=found.draft, accounts=accounts)

    async def find_all(self, organization_id: str, wanted: Sequence[tuple[str, str]]) -> list[FoundDraft | Fault]:
        """Finds many drafts, each on one account, as a call for each would: with one statement if they are known."""
        found = await self._find_known(organization_id, wanted)
        outcomes = [_on_account(found[draft_id], account) for draft_id, account in wanted]
        connected = {
            (each.draft.organization_id, account)
            for each in found.values()
            if not isinstance(each, Fault)
            for account in each.connected
        }
        used = {account for each in outcomes if not isinstance(each, Fault) for account in each.accounts}
        unclear = sorted(account for account in used if (organization_id, account) not in connected)
        refusals = await self._refusals(organization_id, unclear) if unclear else {}
        return [each if isinstance(each, Fault) else refusals.get(each.accounts[0]) or each for each in outcomes]

    async def _find_known(
        self, organization_id: str, wanted: Sequence[tuple[str, str]]
    ) -> dict[str, KnownDraft | Fault]:
        """Reads the drafts from Queue's own table; those that lack an account that is asked for from Drafts."""
        asked = defaultdict[str, list[str]](list)
        for draft_id, account in wanted:
            asked[draft_id].append(account)
        async with self._database.read_session() as session:
            known = await find_drafts(session, [(organization_id, draft_id) for draft_id in asked])
        found: dict[str, KnownDraft | Fault] = {
            draft_id: each for (_, draft_id), each in known.items() if each.draft.has_all(asked[draft_id])
        }
        async with asyncio.TaskGroup() as group:
            reads = {
                draft_id: group.create_task(self._ask((organization_id, draft_id)))
                for draft_id in asked
                if draft_id not in found
            }
        return found | {draft_id: read.result() for draft_id, read in reads.items()}

    async def _ask(self, key: DraftKey) -> KnownDraft | Fault:
        try:
            return KnownDraft(draft=await self._drafts.get_draft(*key, is_optional=False))
        except Fault as fault:
            return fault

    async def _refusals(self, organization_id: str, accounts: Sequence[str]) -> dict[str, Fault]:
        connected = await self._connected([(organization_id, account) for account in accounts])
        async with asyncio.TaskGroup() as group:
            checks = {
                account: group.create_task(self._check_accounts(organization_id, [account], connected=connected))
                for account in accounts
            }
        return {account: refusal for account, check in checks.items() if (refusal := check.result())}

    async def _find(self, key: DraftKey, asked: Sequence[str]) -> KnownDraft:
        """Reads the draft from Queue's own table if that has the accounts asked for, else from Drafts.

        Drafts may have a change that has not been announced here yet, and only Drafts knows all accounts.
        """
        if not asked:
            return await self._find_with_all_accounts(key)
        known = await self._known(key)
        if known and known.draft.has_all(asked):
            return known
        return KnownDraft(draft=await self._drafts.get_draft(*key, is_optional=False))

    async def _find_with_all_accounts(self, key: DraftKey) -> KnownDraft:
        """Reads the draft from Drafts. While that is down or slow, Queue's own table is used, if it has the draft."""
        try:
            return KnownDraft(draft=await self._drafts.get_draft(*key, is_optional=True))
        except (Unavailable, DeadlineExceeded) as fault:
            if known := await self._known(key):
                return known
            if isinstance(fault, Unavailable):
                raise
        return KnownDraft(draft=await self._drafts.get_draft(*key, is_optional=False))

    async def _read_drafts(self, keys: Sequence[DraftKey]) -> list[KnownDraft | None]:
        async with self._database.read_session() as session:
            known = await find_drafts(session, set(keys))
        return [known.get(key) for key in keys]

    async def _read_connected(self, asked: Sequence[Sequence[AccountKey]]) -> list[frozenset[str]]:
        """Returns for each call those of its accounts that Publisher has announced as connected."""
        async with self._database.read_session() as session:
            connected = await find_connected(session, set(chain.from_iterable(asked)))
        return [frozenset(key[1] for key in keys if key in connected) for keys in asked]


def _on_account(found: KnownDraft | Fault, account: str) -> FoundDraft | Fault:
    if isinstance(found, Fault):
        return found
    try:
        return FoundDraft(draft=found.draft, accounts=found.draft.accounts([account]))
    except Fault as fault:
        return fault


def _is_down(_items: object, error: BaseException) -> bool:
    return is_transient(error)
