"""Old reservations go, and those of any local day that may still be counted stay."""

from datetime import timedelta

from publisher_service.application.drop_reservations import DropReservations
from tests.usecase.publisher_service.outreach import Outreach


async def test_reservations_are_dropped_after_four_days(outreach: Outreach) -> None:
    await outreach.claim(await outreach.save(1))
    drop = DropReservations(outreach.replica.database, outreach.clock)
    outreach.clock.moment += timedelta(days=4)
    assert not await drop()
    assert await outreach.used() == 1
    outreach.clock.moment += timedelta(seconds=1)
    assert not await drop()
    assert await outreach.replica.rows("select 1 from reservation") == []
