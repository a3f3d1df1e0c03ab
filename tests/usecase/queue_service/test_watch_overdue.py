"""The figures of late slots that operators see."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.application import watch_overdue
from queue_service.application.watch_overdue import WatchOverdue
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


class Gauge:
    def __init__(self) -> None:
        self.values: list[float] = []

    def set(self, value: float) -> None:
        self.values.append(value)


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> dict[str, Gauge]:
    made = {name: Gauge() for name in ("_slots", "_age", "_behind")}
    for name, gauge in made.items():
        monkeypatch.setattr(watch_overdue, name, gauge)
    return made


async def test_late_and_overdue_slots_are_shown_from_the_start_on(queue: "Queue", gauges: dict[str, Gauge]) -> None:
    watch = WatchOverdue(database=queue.database, clock=queue.clock)
    await queue.save_draft("d1", "page")
    await queue.at("d1", START)
    await watch()
    queue.now = START + timedelta(minutes=2)
    await watch()
    queue.now = START + queue.policy.late_limit + timedelta(minutes=7)
    await queue.hand_over.dispatch()
    queue.now += timedelta(seconds=4)
    await queue.hand_over.repeat()
    await watch()
    assert gauges["_behind"].values == [0, 0, 120, 0]
    assert gauges["_slots"].values == [0, 0, 0, 1]
    assert gauges["_age"].values == [0, 0, 0, 7 * 60 + 4]
