"""A restored database knows only the containers of its copy: that these are not out proves nothing about later ones."""

from datetime import datetime

from tests.usecase.publisher_service.containers import Containers
from tests.usecase.publisher_service.restoring import reconcile, restored, shown


async def prepared(containers: Containers) -> None:
    await containers.claim()
    await containers.work()
    assert await containers.state() == "READY"


async def looked_up(containers: Containers) -> str:
    for question in (await containers.replica.recover()).questions:
        await containers.replica.look_up(question.job)
    return await containers.job()


async def test_a_container_of_the_newest_text_that_is_not_out_is_proof(containers: Containers) -> None:
    await prepared(containers)
    await restored(containers.replica)
    await reconcile(containers.replica)
    assert await looked_up(containers) == "WAITING RETRY"


async def test_a_container_of_an_older_text_proves_nothing(containers: Containers) -> None:
    """The text was edited after the copy, and a container of the new one may be out."""
    await prepared(containers)

    async def replay(since: datetime | None) -> None:
        await containers.save("two", revision=2)

    await restored(containers.replica)
    await reconcile(containers.replica, replay)
    assert await looked_up(containers) == "UNKNOWN"
    assert (await shown(containers.replica))[1].open == 1


async def test_an_expired_container_proves_nothing(containers: Containers) -> None:
    """Another one may have taken its place after the copy, and be out."""
    await containers.control.faults({"fault": "media", "operation": "container", "life": 0.0, "count": 1})
    await containers.claim()
    await containers.work(1)
    await containers.replica.write("update preparation set state = 'READY', expire_time = now() + interval '1 hour'")
    await restored(containers.replica)
    await reconcile(containers.replica)
    assert await looked_up(containers) == "UNKNOWN"
    assert await containers.state() == "READY"


async def test_a_container_past_its_time_proves_nothing(containers: Containers) -> None:
    await prepared(containers)
    await containers.replica.write("update preparation set expire_time = now() - interval '1 minute'")
    await restored(containers.replica)
    await reconcile(containers.replica)
    assert await looked_up(containers) == "UNKNOWN"
