"""What drafts need of Publisher, and how a withdrawal ends that no edit follows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.domain.answer import Answer
from drafts_service.domain.draft import Draft, kept
from drafts_service.domain.post_job import PostJob, fold, latest
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox


class Publisher(Protocol):
    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> Answer | None:
        """Forbids the draft's revisions below this one: once it has returned, none of them starts.

        None: Publisher has not heard of the revision before this one yet, and has forbidden nothing. Raises Unavailable
        when there is no answer.
        """
        ...


async def keep(
    tx: Transaction, draft: Draft, jobs: Sequence[PostJob], answer: Answer, *, outbox: Outbox, now: datetime
) -> None:
    """Leaves the draft as it was, but free to go out although Publisher has, or may have, forbidden its revision."""
    after = kept(draft, below=answer.below)
    if after.revision > draft.revision:
        after = replace(after, exposed=not answer.clears)
    await store.learn(tx.connection, answer.published)
    await store.save(tx.connection, replace(after, progress=fold(after.targets, latest([*jobs, *answer.published]))))
    if after.version > draft.version:
        await outbox.append(tx, [wire.draft_saved(after)], now=now)
