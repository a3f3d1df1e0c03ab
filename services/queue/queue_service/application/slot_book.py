"""What every way of giving a draft its times ends with: slots are stored, announced, remembered, in one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from queue_service import wire
from queue_service.adapters.postgres import account_store, draft_store, slot_store
from queue_service.application.account_check import AccountCheck
from queue_service.domain.draft import Draft, PublishedTarget
from queue_service.domain.slot import DRAFT_PUBLISHED, Found, QueueSlot
from servicekit.faults import DeadlineExceeded, Fault, Refused, Unavailable
from servicekit.ids import IdSource
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class Drafts(Protocol):
    async def get_draft(self, organization_id: str, draft_id: str, *, in_a_hurry: bool) -> Draft: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    draft: Draft
    accounts: tuple[str, ...]


class SlotBook:
    def __init__(
        self,
        *,
        database: Database,
        drafts: Drafts,
        check_accounts: AccountCheck,
        ledger: RequestLedger,
        outbox: Outbox,
        ids: IdSource,
        on_slots: Callable[[], None],
    ) -> None:
        """`on_slots` is called whenever new slots have been committed."""
        self._database = database
        self._drafts = drafts
        self._check_accounts = check_accounts
        self._ledger = ledger
        self._outbox = outbox
        self._ids = ids
        self._on_slots = on_slots

    def new_id(self) -> str:
        return self._ids.new()

    async def find_draft(self, organization_id: str, draft_id: str, asked: Sequence[str]) -> Wanted | Fault:
        """The draft and the accounts that it gets slots on: those asked for, or all of its targets'.

        A fault is returned, not raised: a repeated request gets its first answer whatever holds now.
        """
        try:
            draft = await self._find_draft(organization_id, draft_id, asked)
            accounts = draft.accounts(asked)
        except Fault as fault:
            return fault
        async with self._database.read() as connection:
            connected = await account_store.find_connected(connection, organization_id, accounts)
        refusal = await self._check_accounts(organization_id, accounts, connected=connected)
        return refusal or Wanted(draft=draft, accounts=accounts)

    async def _find_draft(self, organization_id: str, draft_id: str, asked: Sequence[str]) -> Draft:
        """From Queue's own table when that has the accounts asked for, else from Drafts: a change may not have been
        announced yet, and only Drafts knows which accounts are all of them. While it is away the table must do."""
        async with self._database.read() as connection:
            known = await draft_store.find_draft(connection, organization_id, draft_id)
        will_do = known is not None and known.has_all(asked)
        if known and asked and will_do:
            return known
        try:
            return await self._drafts.get_draft(organization_id, draft_id, in_a_hurry=will_do)
        except (Unavailable, DeadlineExceeded):
            if known and will_do:
                return known
            raise

    async def recall(self, tx: Transaction, key: RequestKey, now: datetime) -> bytes | None:
        """The answer to an earlier call with this key. Without one the key is taken by this transaction."""
        remembered = await self._ledger.recall(tx, key, now=now)
        return remembered.response if remembered else None

    async def lock_draft(self, tx: Transaction, draft: Draft, accounts: Sequence[str]) -> Draft:
        """The draft as it is now, with the targets that are not out yet. It stays so until the slots are there.

        The accounts' rows are locked. Refuses what needs no slot on one of them.
        """
        locked = await draft_store.lock_draft(tx.connection, draft, accounts)
        if found := locked.queued:
            raise Refused(
                "ALREADY_QUEUED",
                f"the draft has a slot on account {found.social_account_id} already",
                metadata=in_the_way(found),
            )
        locked.draft.accounts(accounts)
        unpublished = locked.draft.without({each.target for each in locked.published})
        for each in locked.published:
            if not unpublished.targets_on(each.target.social_account_id):
                raise _published(draft, each)
        return unpublished

    async def record(self, tx: Transaction, key: RequestKey, slots: Sequence[QueueSlot], now: datetime) -> bytes:
        """The accounts' rows are locked. Returns the answer to the call."""
        sequences = await slot_store.insert_slots(tx.connection, slots)
        news = [wire.slot_scheduled(replace(slot, sequence=sequences[slot.id])) for slot in slots]
        await self._outbox.append(tx, news, now=now)
        answer = wire.encoded_slots(slots)
        await self._ledger.answer(tx, key, answer)
        tx.after_commit(self._on_slots)
        return answer


def _published(draft: Draft, out: PublishedTarget) -> Refused:
    account = out.target.social_account_id
    return Refused(
        DRAFT_PUBLISHED,
        f"all targets of the draft on account {account} are out",
        metadata={
            "draft_id": draft.id,
            "social_account_id": account,
            "post_job_id": out.job_id,
            "external_url": out.external_url,
        },
    )


def in_the_way(found: Found) -> dict[str, str]:
    return {
        "social_account_id": found.social_account_id,
        "queue_slot_id": found.slot_id,
        "schedule_time": found.schedule_time.isoformat().replace("+00:00", "Z"),
    }
