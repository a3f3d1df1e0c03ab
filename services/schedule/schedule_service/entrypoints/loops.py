"""The loops of a Schedule process and their periods."""

from datetime import timedelta

from schedule_service.application.calendars.follow_slots import DeletePastSlots
from schedule_service.application.timers.delete_finished_timers import DeleteFinishedTimers
from schedule_service.application.zone_changes.watch_tzdata import WatchTzdata
from servicekit.run import Loop

_PERIOD = timedelta(minutes=1)


def loops(
    *, delete_past_slots: DeletePastSlots, delete_finished_timers: DeleteFinishedTimers, watch_tzdata: WatchTzdata
) -> list[Loop]:
    return [
        Loop("past slots", delete_past_slots, _PERIOD),
        Loop("finished timers", delete_finished_timers, _PERIOD),
        Loop("tzdata watch", watch_tzdata, _PERIOD),
    ]
