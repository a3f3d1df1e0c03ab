"""Taking dispatched slots back from Publisher, for calls that pause, move, remove or clear.

It takes three steps. `intend_return` and `intend_cancel` record in the caller's transaction what becomes of the slots;
then `ask` calls Publisher, outside of any transaction; then `apply` turns the answers into reports of the jobs, in
another transaction of the caller. The same reports also come as events: whichever comes first is applied. If the caller
dies in between, `CompleteTakeBacks` asks again. Publisher's CANCELED holds for the revision that the slot has, even
if commands for it still come; a slot that returns gets the next revision.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from queue_service.adapters.postgres import take_backs
from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.application.settle_slots import SettleSlots
from queue_service.domain.account import AccountKey
from queue_service.domain.slot import CancelReason, TakingBack
from queue_service.domain.take_back import CancelAnswer, CancelOutcome, SlotPost
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.faults import Fault, Unavailable
from servicekit.pg.database import Transaction

INTENDED = failpoints.declare("queue.take_back.intended")
ASKED = failpoints.declare("queue.take_back.asked")

_RETRY_AFTER = timedelta(seconds=1)
_ASKED_AT_ONCE = 500
"""The most posts that CancelPostJobs takes."""


class PostCanceler(Protocol):
    """Publisher; see `queue_service.adapters.publisher_client`."""

    async def cancel_posts(self, organization_id: str, posts: Sequence[SlotPost]) -> list[CancelAnswer]: ...


class TakeBack:
    def __init__(self, *, publisher: PostCanceler, settle: SettleSlots) -> None:
        self._publisher = publisher
        self._settle = settle

    async def intend_return(
        self, tx: Transaction, account: AccountKey, slot_ids: Collection[str] | None = None, *, now: datetime
    ) -> list[SlotPost]:
        """Records that dispatched slots of the locked account, or these of them, are to go back to the queue.

        Returns the posts to ask for.
        """
        slots = await _chosen(tx, account, slot_ids, now)
        return await take_backs.intend(tx, slots, purpose=TakingBack.RETURN, now=now)

    async def intend_cancel(
        self,
        tx: Transaction,
        account: AccountKey,
        slot_ids: Collection[str] | None = None,
        *,
        reason: CancelReason,
        now: datetime,
    ) -> list[SlotPost]:
        """Records that dispatched slots of the locked account, or these of them, are to be canceled.

        Returns the posts to ask for.
        """
        slots = await _chosen(tx, account, slot_ids, now)
        return await take_backs.intend(tx, slots, purpose=TakingBack.CANCEL, reason=reason, now=now)

    async def ask(self, posts: Iterable[SlotPost]) -> list[CancelAnswer]:
        """Asks Publisher for the posts. Raises `TAKE_BACK_PENDING` if it does not answer: some may be given back."""
        await failpoint(INTENDED)
        by_organization = defaultdict[str, list[SlotPost]](list)
        for post in posts:
            by_organization[post.organization_id].append(post)
        answers: list[CancelAnswer] = []
        for organization_id, asked in by_organization.items():
            for first in range(0, len(asked), _ASKED_AT_ONCE):
                page = asked[first : first + _ASKED_AT_ONCE]
                try:
                    answers += await self._publisher.cancel_posts(organization_id, page)
                except Fault as unanswered:
                    raise take_back_pending(unanswered.retry_after) from unanswered
        await failpoint(ASKED)
        return answers

    async def apply(self, tx: Transaction, answers: Sequence[CancelAnswer], now: datetime) -> None:
        """Settles the slots by the answers, and gives up those for which it was too late. Locks their accounts first.

        After that the caller reads the slots: one that was given back is SCHEDULED or CANCELED, one that was not is
        DISPATCHED or has ended.
        """
        if not answers:
            return
        await lock_queues(tx, {answer.post.account for answer in answers})
        canceled = [answer.post for answer in answers if answer.outcome is CancelOutcome.CANCELED]
        await take_backs.renew(tx, canceled)
        await self._settle(tx, [answer.job for answer in answers], now)
        late = [answer.post for answer in answers if answer.outcome is not CancelOutcome.CANCELED]
        await take_backs.give_up(tx, late)


def take_back_pending(retry_after: timedelta | None = None) -> Unavailable:
    return Unavailable(
        "TAKE_BACK_PENDING",
        "publisher has not answered whether it gives all posts back; repeat the request",
        retry_after=retry_after or _RETRY_AFTER,
    )


async def _chosen(
    tx: Transaction, account: AccountKey, slot_ids: Collection[str] | None, now: datetime
) -> list[tuple[str, str]]:
    if slot_ids is None:
        return await take_backs.find_dispatched(tx, [account], now=now)
    return [(account[0], slot_id) for slot_id in slot_ids]
