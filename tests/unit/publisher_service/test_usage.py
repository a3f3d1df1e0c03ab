"""Use of caps: what is capped or used is shown, with the cap that holds."""

from datetime import UTC, datetime

from channels import Action
from publisher_service.domain.account_schedule import day_of
from publisher_service.domain.limits import LimitDefaults
from publisher_service.domain.usage import Counted, usage_of

NONE = Counted(cap=None, used=0, waiting=0)


def test_what_is_capped_or_used_is_shown_in_the_order_of_actions() -> None:
    counted = dict.fromkeys(Action, NONE) | {
        Action.POST: Counted(cap=None, used=3, waiting=0),
        Action.MESSAGE: Counted(cap=0, used=0, waiting=9),
    }
    day = day_of("Asia/Kolkata", datetime(2026, 3, 2, 20, tzinfo=UTC))
    usage = usage_of("Asia/Kolkata", day, counted, LimitDefaults())
    assert (usage.local_date.isoformat(), usage.reset_time.isoformat()) == ("2026-03-03", "2026-03-03T18:30:00+00:00")
    assert [(each.action, each.used, each.cap, each.is_override, each.waiting) for each in usage.usages] == [
        (Action.POST, 3, None, False, 0),
        (Action.EMAIL, 0, 20, False, 0),
        (Action.MESSAGE, 0, 0, True, 9),
        (Action.CONNECTION_REQUEST, 0, 20, False, 0),
    ]
