"""The accounts and targets of a draft that get slots."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.domain.draft import Draft, Target
from queue_service.domain.job import JobState
from servicekit.faults import NotFound, Refused, Unavailable
from testkit.clocks import START
from tests.usecase.queue_service.steps import channels, send_and_end

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]


async def test_a_published_draft_is_not_scheduled_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", FEED)
    await send_and_end(queue, JobState.PUBLISHED)
    for call in (queue.at("d1", START + HOUR), queue.at("d1", START + HOUR, "page"), queue.add("d1")):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.reason == "DRAFT_PUBLISHED"
        assert refused.value.metadata == {
            "draft_id": "d1",
            "social_account_id": "page",
            "post_job_id": "job-d1-facebook-",
            "external_url": "https://example.org/1",
        }
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_a_published_account_does_not_stop_another(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, "other")
    await queue.at("d1", queue.now, "page")
    await queue.hand_over.dispatch()
    await queue.settle(*(queue.report(each, JobState.PUBLISHED, 3) for each in queue.stream.taken()))
    [slot] = await queue.at("d1", START + HOUR, "other")
    assert slot.social_account_id == "other"


async def test_a_new_slot_has_the_targets_not_sent_yet(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await send_and_end(queue, JobState.PUBLISHED, JobState.MISSED)
    [slot] = await queue.at("d1", START + HOUR)
    assert channels(slot) == ["instagram_feed"]
    assert [channel for each in (await queue.announced())[1:] for channel in (t.channel for t in each.targets)] == [
        "instagram_feed"
    ]


async def test_a_target_that_was_just_added_can_be_scheduled_at_once(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    queue.drafts.drafts["d1"] = Draft(
        organization_id="acme",
        id="d1",
        revision=2,
        targets=tuple(Target(social_account_id=each, channel="facebook", destination="") for each in ("new", "page")),
    )
    [slot] = await queue.at("d1", START + HOUR, "new")
    assert slot.social_account_id == "new"
    assert queue.drafts.asked == 1
    await queue.at("d1", START + HOUR, "page")
    assert queue.drafts.asked == 1


async def test_drafts_is_asked_before_an_account_is_refused_as_no_target(queue: "Queue") -> None:
    saved = await queue.save_draft("d1", "page")
    queue.drafts.drafts["d1"] = saved
    with pytest.raises(Refused) as refused:
        await queue.at("d1", START + HOUR, "other")
    assert refused.value.reason == "ACCOUNT_NOT_A_TARGET"
    queue.drafts.fault = Unavailable("DOWNSTREAM_UNAVAILABLE", "away")
    with pytest.raises(Unavailable):
        await queue.at("d1", START + HOUR, "other")
    queue.drafts.fault = NotFound("DRAFT_NOT_FOUND", "gone")
    with pytest.raises(NotFound):
        await queue.at("d1", START + HOUR, "other")


async def test_all_accounts_are_those_that_the_draft_has_now(queue: "Queue") -> None:
    await queue.put_schedule("new", *DAILY)
    await queue.save_draft("d1", "page")
    only_new = (Target(social_account_id="new", channel="facebook", destination=""),)
    queue.drafts.drafts["d1"] = Draft(organization_id="acme", id="d1", revision=2, targets=only_new)
    [slot] = await queue.at("d1", START + HOUR)
    assert slot.social_account_id == "new"
    await queue.settle(queue.report_on(slot, JobState.CANCELED, 2))
    [slot] = await queue.add("d1")
    assert slot.social_account_id == "new"


async def test_announced_drafts_serve_while_drafts_is_down(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    queue.drafts.fault = Unavailable("DOWNSTREAM_UNAVAILABLE", "away")
    assert len(await queue.at("d1", START + HOUR)) == 1


async def test_a_slow_answer_about_an_unknown_draft_is_waited_for(queue: "Queue") -> None:
    saved = await queue.save_draft("d1", "page")
    queue.drafts.drafts["d2"] = replace(saved, id="d2")
    queue.drafts.slow = True
    [slot] = await queue.at("d2", START + HOUR)
    assert slot.draft_id == "d2"
    assert queue.drafts.asked == 2
    [slot] = await queue.at("d1", START + 2 * HOUR)  # what was announced serves
    assert queue.drafts.asked == 3
