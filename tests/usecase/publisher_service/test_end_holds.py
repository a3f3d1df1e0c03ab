"""Holds end at their time, as if they were released then."""

from datetime import timedelta

from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.replica import Replica, a_command
from tests.usecase.publisher_service.wide_holds import WIDE, all_out, branded, freed


async def test_a_hold_ends_by_itself(replica: Replica) -> None:
    names = await branded(replica, 1)
    (now,) = await replica.rows("select clock_timestamp() as moment")
    for scope, scope_id in {**WIDE, Scope.ACCOUNT: f"page-{names[0]}"}.items():
        await replica.hold(scope_id, scope=scope, hold=scope, end=now.moment + timedelta(hours=1))
    assert not await replica.end_holds()
    await replica.claim([a_command(name) for name in names])
    await replica.write("update hold set end_time = :then", then=now.moment)
    for _ in range(5):
        assert await replica.end_holds()
    assert not await replica.end_holds()
    assert await replica.rows("select 1 from hold where in_force") == []
    await freed(replica)
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 1}
