"""The periodic steps."""

from datetime import timedelta

from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from servicekit.pg.housekeeping import Housekeeping
from servicekit.run import Loop


def loops(
    *,
    complete_withdrawals: CompleteWithdrawals,
    withdraw_period: timedelta,
    housekeeping: Housekeeping,
    housekeeping_period: timedelta,
) -> list[Loop]:
    return [
        Loop("withdrawals", complete_withdrawals, withdraw_period),
        Loop("housekeeping", housekeeping.step, housekeeping_period),
    ]
