"""Carries out the calls that change recipients, webhooks and deliveries: each once, through the ledger."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger

Result = TypeVar("Result")
Answer = TypeVar("Answer")

_COMMITTED = declare("publisher.change_notifications.committed")


class NotificationChanges:
    def __init__(self, ledger: RequestLedger) -> None:
        self._ledger = ledger

    async def once(
        self, call: Call[Result, Answer], work: Callable[[Transaction, datetime], Awaitable[Result]]
    ) -> Answer:
        answer = await self._ledger.once(call, work)
        await failpoint(_COMMITTED)
        return answer
