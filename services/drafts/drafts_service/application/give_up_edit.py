"""Ends a withdrawal without its edit; shared by UpdateDraft and CompleteWithdrawals."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from drafts_service.adapters.postgres.drafts import save_draft
from drafts_service.adapters.postgres.post_jobs import save_jobs
from drafts_service.domain.draft import Draft, edit_given_up
from drafts_service.domain.post_job import PostJob, fold, latest
from drafts_service.domain.withdrawal import WithdrawalAnswer
from drafts_service.wire import events
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox


class ContentWithdrawer(Protocol):
    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        """Forbids the draft's revisions below `below`, unless one of them is published already.

        Returns None, and forbids nothing, if Publisher has not received the revision before `below` yet. Raises
        Unavailable if Publisher does not answer.
        """
        ...


async def give_up_edit(
    tx: Transaction, draft: Draft, jobs: Sequence[PostJob], answer: WithdrawalAnswer, *, outbox: Outbox, now: datetime
) -> None:
    """Saves the draft unchanged under a revision that may be sent: Publisher may have forbidden the current one."""
    after = edit_given_up(draft, below=answer.below)
    if after.revision > draft.revision:
        after = replace(after, exposed=not answer.clears)
    await save_jobs(tx.connection, answer.published)
    await save_draft(tx.connection, replace(after, folded=fold(after.targets, latest([*jobs, *answer.published]))))
    if after.version > draft.version:
        await outbox.append(tx, [events.draft_saved(after)], now=now)
