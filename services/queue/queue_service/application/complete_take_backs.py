"""The loop that takes posts back for calls that died, and for paused queues.

A call records what is to become of dispatched slots before it asks Publisher, so all that it leaves unanswered is found
here. Posts of a paused queue that were being sent when it was paused, and have not gone out, are asked for here, and so
are those that the previous release, which knows no pauses, dispatches meanwhile: Publisher's hold keeps them from
starting.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from itertools import groupby

from opentelemetry import metrics

from queue_service.adapters.postgres import take_backs
from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.application.take_back import TakeBack
from queue_service.domain.account import AccountKey
from queue_service.domain.slot import TakingBack
from queue_service.domain.take_back import SlotPost
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_PATIENCE = timedelta(seconds=10)
"""Longer than a call waits for Publisher: nobody else asks for the same posts."""
_AT_ONCE = 200
_FAILURES = 3
"""So many questions without an answer mean that Publisher is down: no more are asked."""

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_completed = _meter.create_counter(
    "postflow.queue.take_backs.completed", description="Slots that the loop has asked Publisher to give back"
)


class CompleteTakeBacks:
    def __init__(self, *, database: Database, clock: DatabaseClock, take_back: TakeBack) -> None:
        self._database = database
        self._clock = clock
        self._take_back = take_back
        self._failures = 0
        _completed.add(0)

    async def __call__(self) -> bool:
        """Asks for everything once. Returns False: Publisher may be down."""
        self._failures = 0
        try:
            await self._complete_intended()
            await self._complete_paused()
        except Unavailable as unanswered:
            _log.warning("posts are not taken back yet: %s", unanswered.message)
        return False

    async def _complete_intended(self) -> None:
        after = ("", "", "")
        while True:
            async with self._database.read_session() as session:
                now = await self._clock.now(session.connection)
                found = await take_backs.find_intended(session, after, before=now - _PATIENCE, limit=_AT_ONCE)
            if not found:
                return
            (organization_id, account), slot_id, _ = found[-1]
            after = (organization_id, account, slot_id)
            await self._ask_again([(key[0], slot) for key, slot, is_dispatched in found if is_dispatched])
            await self._repair([(key, slot) for key, slot, is_dispatched in found if not is_dispatched])

    async def _ask_again(self, slots: Sequence[tuple[str, str]]) -> None:
        async def intend(tx: Transaction) -> list[SlotPost]:
            now = await self._clock.now(tx.connection)
            return await take_backs.intend(tx, slots, purpose=TakingBack.NO, now=now)

        if slots:
            await self._ask(await self._database.run(intend))

    async def _repair(self, slots: Sequence[tuple[AccountKey, str]]) -> None:
        async def revive(tx: Transaction) -> None:
            now = await self._clock.now(tx.connection)
            await lock_queues(tx, {account for account, _ in slots})
            await take_backs.revive(tx, [(account[0], slot) for account, slot in slots], now=now)

        if slots:
            await self._database.run(revive)

    async def _complete_paused(self) -> None:
        after: AccountKey | None = ("", "")
        while after is not None:
            async with self._database.read_session() as session:
                now = await self._clock.now(session.connection)
                found, after = await take_backs.find_unasked(
                    session, after, before=now - _PATIENCE, now=now, limit=_AT_ONCE
                )
            by_account = defaultdict[AccountKey, list[str]](list)
            for account, slot_id in found:
                by_account[account].append(slot_id)
            for account, slot_ids in by_account.items():
                await self._ask(await self._database.run(partial(self._intend, account, slot_ids)))

    async def _intend(self, account: AccountKey, slot_ids: Sequence[str], tx: Transaction) -> list[SlotPost]:
        now = await self._clock.now(tx.connection)
        if not await take_backs.lock_paused(tx, account):
            return []
        return await self._take_back.intend_return(tx, account, slot_ids, now=now)

    async def _ask(self, posts: Iterable[SlotPost]) -> None:
        """Asks for the posts of each organization by itself: what cannot be answered keeps no others waiting."""
        for organization_id, asked in groupby(sorted(posts, key=_organization), _organization):
            try:
                await self._ask_of_one(list(asked))
            except Unavailable as unanswered:
                self._failures += 1
                if self._failures == _FAILURES:
                    raise
                _log.warning("posts of %s are not taken back yet: %s", organization_id, unanswered.message)

    async def _ask_of_one(self, posts: Sequence[SlotPost]) -> None:
        answers = await self._take_back.ask(posts)
        _completed.add(len({post.slot_key for post in posts}))

        async def apply(tx: Transaction) -> None:
            await self._take_back.apply(tx, answers, await self._clock.now(tx.connection))

        await self._database.run(apply)


def _organization(post: SlotPost) -> str:
    return post.organization_id
