"""Saved drafts make post jobs, and cancel those of targets that were removed."""

from datetime import timedelta

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Start

ORGANIZATION = "acme"


async def test_a_target_that_was_removed_from_the_draft_is_canceled(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1", "page", "other")
        await rig.in_state("PENDING", "d1", "other")
        await rig.save_draft("d1", "page", revision=2)
        await rig.in_state("CANCELED", "d1", "other")
        assert (await rig.job("d1")).state == "PENDING"


async def test_content_that_does_not_match_its_digest_is_parked(start: Start) -> None:
    from postflow.drafts.v1 import drafts_events_pb2

    async with start() as rig:
        await rig.connect()
        bad = drafts_events_pb2.DraftSaved(
            organization_id="acme", draft_id="d0", version=1, content=b"x", content_digest="0"
        )
        await rig.announce("drafts", "draft", bad, "acme")
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        assert len(await rig.rows("select 1 from dead_letter")) == 1


async def test_a_slot_for_a_removed_target_sends_nothing_and_is_answered(start: Start) -> None:
    async with start() as rig:
        await rig.connect("page")
        await rig.connect("other")
        await rig.save_draft("d1", "page", "other")
        await rig.in_state("PENDING", "d1", "other")
        # Only the targets change: the approval of the text stays.
        await rig.save_draft("d1", "page", revision=2)
        await rig.in_state("CANCELED", "d1", "other")

        slot = await rig.go("d1", account="other")

        ended = await rig.in_state("CANCELED", "d1", "other")
        await rig.go("d1", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        ended = await rig.in_state("CANCELED", "d1", "other")
        assert ended.slot_id == slot  # Queue gets an answer for it
        assert [effect["account"] for effect in rig.sandbox.effects()] == ["ext-page"]


async def test_a_slot_for_a_target_removed_in_the_meantime_is_canceled(start: Start) -> None:
    async with start() as rig:
        await rig.connect("other")
        await rig.save_draft("d1", "page", "other")
        await rig.in_state("PENDING", "d1", "other")
        await rig.save_draft("d1", "page", revision=2)
        await rig.in_state("CANCELED", "d1", "other")
        slot = await rig.schedule("d1", rig.clock.now() + timedelta(hours=1), account="other", knowing=1)

        async def has_ended() -> bool:
            job = await rig.job("d1", "other")
            return (job.slot_id, job.state) == (slot, "CANCELED")

        await eventually(has_ended)
        assert (await rig.announced("d1"))[-1].post_job.slot_id == slot


async def test_an_older_draft_without_the_target_does_not_cancel_its_slot(start: Start) -> None:
    async with start() as rig:
        await rig.connect("other")
        await rig.save_draft("d1", "page", approved=False)
        due = rig.clock.now()
        slot = await rig.schedule("d1", due, account="other", knowing=2)
        await rig.in_state("SCHEDULED", "d1", "other")
        await rig.save_draft("d1", "page", version=2)

        async def is_heard() -> bool:
            (content,) = await rig.rows("select version from content")
            return bool(content.version == 2)

        await eventually(is_heard)
        assert (await rig.job("d1", "other")).state == "SCHEDULED"
        await rig.save_draft("d1", "page", "other", revision=2, version=3)
        await rig.command("d1", slot, due, account="other", revision=2)
        await rig.in_state("PUBLISHED", "d1", "other")
        assert "CANCELED" not in await rig.kinds("d1")


async def test_a_target_that_is_added_again_goes_out_with_its_slot(start: Start) -> None:
    async with start() as rig:
        for account in ("page", "other"):
            await rig.connect(account)
        await rig.save_draft("d1", "page", "other", version=1)
        due = rig.clock.now() + timedelta(seconds=3)
        slot = rig.new_slot()
        both = rig.scheduled("d1", slot, due)
        both.targets.add(social_account_id="other", channel="facebook")
        await rig.announce("queue", "slot", both, ORGANIZATION)
        for account in ("page", "other"):
            await rig.in_state("SCHEDULED", "d1", account)
        await rig.save_draft("d1", "page", version=2)
        await rig.in_state("CANCELED", "d1", "other")
        await rig.save_draft("d1", "page", "other", version=3)
        await rig.command("d1", slot, due)
        for account in ("page", "other"):
            await rig.in_state("PUBLISHED", "d1", account)
        assert len(rig.sandbox.effects()) == 2
