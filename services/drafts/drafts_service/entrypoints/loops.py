"""The loops of a Drafts process and their periods."""

from datetime import timedelta

from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from servicekit.run import Loop


def loops(
    *,
    complete_withdrawals: CompleteWithdrawals,
    withdraw_period: timedelta,
) -> list[Loop]:
    return [
        Loop("withdrawals", complete_withdrawals, withdraw_period),
    ]
