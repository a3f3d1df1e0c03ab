"""Expensive rules are expanded in threads, and the event loop stays responsive."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from servicekit.faults import InvalidField

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


class WatchedRrule(str):
    """An rrule that records which threads read it."""

    __slots__ = ("readers",)
    readers: set[int]

    def __new__(cls, value: str, readers: set[int]) -> "WatchedRrule":
        watched = super().__new__(cls, value)
        watched.readers = readers
        return watched

    def strip(self, characters: str | None = None, /) -> str:
        self.readers.add(threading.get_ident())
        return super().strip(characters)


async def test_a_rule_is_expanded_in_a_worker_thread(rules: "Rules") -> None:
    # Counting a COUNT may take a tenth of a second, which must not delay timers.
    readers: set[int] = set()
    made, changed = (WatchedRrule(f"FREQ=DAILY;BYMONTHDAY=7;COUNT={n}", readers) for n in (11, 12))
    await rules.create(terms=replace(rules.by_rrule, rrule=made))
    await rules.update(rrule=changed)
    with pytest.raises(InvalidField):
        await rules.update(rrule=WatchedRrule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=13", readers))
    assert readers
    assert threading.get_ident() not in readers


def test_a_process_switches_threads_often() -> None:
    program = "import sys; from schedule_service.main import main; main(); print(sys.getswitchinterval())"
    unset = {name: value for name, value in os.environ.items() if not name.startswith("POSTFLOW_")}
    done = subprocess.run([sys.executable, "-c", program], env=unset, check=True, capture_output=True, text=True)
    assert float(done.stdout) < 0.001
