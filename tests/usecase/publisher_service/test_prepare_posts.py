"""Posts that are prepared: none goes out before it is ready, and nothing that was made of older bytes ever does."""

import pytest

from publisher_service.application.send_post import post_of
from publisher_service.domain.preparation import Void
from testkit.eventually import eventually
from tests.usecase.publisher_service.containers import Containers

EXPIRED = Void(reason="CONTAINER_EXPIRED", message="the container has expired")


async def test_a_post_waits_until_it_is_ready_and_then_goes_out(containers: Containers) -> None:
    assert await containers.claim() == []
    assert await containers.job() == "WAITING MEDIA"
    await containers.work()
    assert (await containers.state(), await containers.job()) == ("READY", "READY")
    (claimed,) = await containers.claim()
    assert claimed.handle
    await containers.send(claimed)
    (effect,) = containers.control.effects()
    assert (effect["text"], effect["container"]) == ("one", claimed.handle)
    assert await containers.job() == "PUBLISHED"


async def test_no_attempt_begins_while_the_provider_works(containers: Containers) -> None:
    await containers.control.account("ext", media_seconds=3600)
    await containers.claim()
    await containers.work(3)
    assert (await containers.state(), await containers.job()) == ("PROCESSING", "WAITING MEDIA")
    assert await containers.claim() == []
    assert await containers.replica.rows("select * from attempt") == []


async def test_an_edit_voids_what_was_made_of_the_older_text(containers: Containers) -> None:
    await containers.claim()
    await containers.work()
    assert await containers.state() == "READY"
    await containers.save("two", revision=2)
    assert await containers.claim(2) == []
    await containers.work()
    (claimed,) = await containers.claim(2)
    await containers.send(claimed)
    assert [effect["text"] for effect in containers.control.effects()] == ["two"]


async def test_a_process_that_comes_back_after_an_edit_changes_nothing(containers: Containers) -> None:
    """A process made a container of the first text, and stood still before it recorded that."""
    await containers.claim()
    (stale,) = await containers.take()
    await containers.replica.write("update preparation set next_time = now() - interval '1 minute'")
    await containers.save("two", revision=2)
    await containers.work()
    assert await containers.state() == "READY"
    await containers.prepare(stale)
    (claimed,) = await containers.claim(2)
    await containers.send(claimed)
    assert [effect["text"] for effect in containers.control.effects()] == ["two"]


async def test_a_process_that_dies_leaves_its_preparation_to_the_next(containers: Containers) -> None:
    await containers.claim()
    assert len(await containers.take()) == 1
    assert list(await containers.take()) == []
    await containers.replica.write("update preparation set next_time = now() - interval '1 minute'")
    await containers.work()
    (claimed,) = await containers.claim()
    await containers.send(claimed)
    assert len(containers.control.effects()) == 1


async def test_what_has_expired_is_not_published_but_prepared_again(containers: Containers) -> None:
    await containers.claim()
    await containers.work()
    (old,) = await containers.replica.rows("select handle from preparation")
    await containers.replica.write("update preparation set expire_time = now()")
    assert await containers.claim() == []
    assert await containers.job() == "WAITING MEDIA"
    await containers.work()
    (claimed,) = await containers.claim()
    assert claimed.handle not in ("", old.handle)


async def test_a_withdrawn_text_is_not_published_though_it_is_ready(containers: Containers) -> None:
    await containers.claim()
    await containers.work()
    await containers.replica.withdraw("acme", "d0", 2)
    assert await containers.claim() == []
    assert await containers.job() == "BLOCKED WITHDRAWN"
    assert containers.control.effects() == []


async def test_content_that_the_provider_refuses_fails_with_its_words(containers: Containers) -> None:
    fault = {"fault": "status", "status": 400, "operation": "container"}
    await containers.control.faults(fault)
    await containers.claim()
    await containers.work()
    assert (await containers.state(), await containers.job()) == ("REFUSED", "READY")
    assert await containers.claim() == []
    (job,) = await containers.replica.rows("select * from post_job")
    assert (job.state, job.error_reason, job.attempts) == ("FAILED", "STATUS_400", 0)
    assert job.error_message


async def test_processing_that_fails_is_repeated_and_then_fails_the_post(containers: Containers) -> None:
    bad = {"fault": "media", "operation": "container", "error": "2207026: bad format"}
    await containers.control.faults({**bad, "count": 1})
    await containers.claim()
    await containers.work(4)
    assert await containers.state() == "READY"
    await containers.control.faults(bad)
    await containers.save("two", revision=2)
    await containers.claim(2)
    await containers.work(8)
    assert await containers.state() == "REFUSED"
    await containers.claim(2)
    (job,) = await containers.replica.rows("select * from post_job")
    assert (job.state, job.error_reason, job.error_message) == ("FAILED", "MEDIA_ERROR", "2207026: bad format")


@pytest.mark.parametrize("fault", ["reset_before_effect", "status", "garbage"])
async def test_a_preparation_that_fails_is_repeated(containers: Containers, fault: str) -> None:
    await containers.control.faults(
        {"fault": fault, "operation": "container", "count": 1}, {"fault": fault, "operation": "status", "count": 1}
    )
    await containers.claim()

    async def is_ready() -> bool:
        await containers.work(1)
        return (await containers.state(), await containers.job()) == ("READY", "READY")

    await eventually(is_ready)


@pytest.mark.parametrize("effect", [True, False])
async def test_an_unknown_outcome_is_read_from_the_container(containers: Containers, effect: bool) -> None:
    await containers.claim()
    await containers.work()
    (first,) = await containers.claim()
    await containers.control.faults({"fault": "status", "effect": effect, "count": 1})
    await containers.send(first)
    assert await containers.job() == "UNKNOWN"
    # Asked in vain while the outcome is unknown: the handle stays.
    await containers.replica.write(
        "update preparation set next_time = now() - interval '1 minute', expire_time = now()"
    )
    await containers.work()
    (question,) = (await containers.replica.recover()).questions
    await containers.replica.look_up(question.job)
    if effect:
        assert await containers.job() == "PUBLISHED"
    else:
        assert await containers.job() == "WAITING RETRY"
        await containers.replica.write("update preparation set expire_time = now() + interval '1 hour'")
        (second,) = await containers.claim()
        assert second.handle == first.handle
        await containers.send(second)
    assert len(containers.control.effects()) == 1


async def test_an_expired_container_is_replaced_once_it_is_known_not_to_be_out(containers: Containers) -> None:
    await containers.control.faults({"fault": "media", "operation": "container", "life": 1.0, "count": 1})
    await containers.claim()
    await containers.work()
    (first,) = await containers.claim()

    async def is_over() -> bool:
        return (await containers.adapter.check(post_of(first, "sandbox-ok"))) == EXPIRED

    await eventually(is_over)
    await containers.send(first)
    assert await containers.job() == "UNKNOWN"
    (question,) = (await containers.replica.recover()).questions
    await containers.replica.look_up(question.job)
    assert (await containers.job(), await containers.state()) == ("WAITING RETRY", "PENDING")
    assert await containers.claim() == []
    await containers.work()
    (second,) = await containers.claim()
    assert second.handle != first.handle
    await containers.send(second)
    assert [effect["container"] for effect in containers.control.effects()] == [second.handle]


async def test_refused_credentials_disconnect_the_account(containers: Containers) -> None:
    await containers.control.faults({"fault": "status", "status": 401, "operation": "container"})
    await containers.claim()
    await containers.work()
    assert await containers.claim() == []
    assert await containers.job() == "BLOCKED ACCOUNT_NOT_CONNECTED"


async def test_what_is_due_of_a_busy_organization_is_left_to_a_later_look(containers: Containers) -> None:
    await containers.claim()
    assert await containers.prepare.take(containers.provider, 8, busy=["acme", "other"]) == []
    (taken,) = await containers.prepare.take(containers.provider, 8, busy=["other"])
    assert taken.organization_id == "acme"
