"""Posts are prepared ahead of their time, each when its time comes near."""

from datetime import timedelta

from publisher_service.domain.plan import Slot
from publisher_service.domain.post_job import Target
from tests.usecase.publisher_service.containers import Containers
from tests.usecase.publisher_service.replica import FAR


async def test_posts_are_prepared_ahead_of_their_time(containers: Containers) -> None:
    (now,) = await containers.replica.rows("select now() as now")
    slot = Slot(
        organization_id="acme",
        slot_id="slot",
        sequence=1,
        revision=1,
        draft_id="d0",
        targets=(Target(social_account_id="page", channel="facebook"),),
        schedule_time=now.now + timedelta(minutes=10),
        not_after=FAR,
        target_month="",
        traceparent="",
    )
    await containers.replica.take(slot)
    await containers.ahead()
    await containers.work()
    assert (await containers.state(), await containers.job()) == ("READY", "SCHEDULED")
    await containers.replica.write("delete from preparation")
    await containers.ahead()
    assert await containers.replica.rows("select * from preparation") == []
