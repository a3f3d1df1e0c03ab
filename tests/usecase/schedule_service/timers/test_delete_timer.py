"""Deleting timers."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from servicekit.faults import NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


async def test_a_deleted_timer_is_not_found(timers: "Timers") -> None:
    made = await timers.create(delay=timedelta(0))
    await timers.delete(etag=made.etag)
    assert await timers.fire_due() == []
    for call in (timers.get, timers.pause, timers.resume, timers.fire, timers.delete):
        with pytest.raises(NotFound) as missing:
            await call()
        assert (missing.value.reason, missing.value.metadata) == ("TIMER_NOT_FOUND", {"timer_id": "t"})
