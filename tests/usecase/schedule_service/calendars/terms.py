"""The terms of rules for tests of their use cases."""

from dataclasses import replace
from datetime import date, time

from civil.weekly import WeeklySlot
from civil.zones import find_zone
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, Terms

WEEKLY = Terms(
    name="Monday motivation",
    time_zone=find_zone("America/New_York"),
    weekly_slots=(WeeklySlot(day=0, hour=0, minute=0), WeeklySlot(day=6, hour=23, minute=59)),
    rrule="",
    start_time=None,
    start_date=None,
    end_date=date(2027, 12, 31),
    excluded_dates=(date(2026, 12, 25), date(2027, 1, 1)),
    channels=("facebook", "instagram_feed"),
    category_id="memes",
    asset_policy=AssetPolicy.REQUIRED,
    enabled=True,
)
BY_RRULE = replace(
    WEEKLY,
    weekly_slots=(),
    rrule="FREQ=MONTHLY;BYDAY=1TU",
    start_time=time(23, 59),
    start_date=date(2026, 3, 1),
    end_date=None,
    excluded_dates=(),
)
