"""The loops of a Drafts process and their periods."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from servicekit.run import Loop


def loops(
    *,
    complete_withdrawals: CompleteWithdrawals,
    withdraw_period: timedelta,
    refresh_rules: Callable[[], Awaitable[None]],
) -> list[Loop]:
    return [
        Loop("withdrawals", complete_withdrawals, withdraw_period),
        Loop("channel rules", refresh_rules, timedelta(minutes=1)),
    ]
