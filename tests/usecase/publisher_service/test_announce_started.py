"""Attempts that stay open are announced."""

from datetime import timedelta

from tests.usecase.publisher_service.rig import Start


async def test_a_slow_attempt_is_announced_as_started(start: Start) -> None:
    async with start(request_timeout=timedelta(seconds=6)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 2.2, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        assert await rig.kinds("d1") == ["CREATED", "SCHEDULED", "STARTED", "SUCCEEDED"]
