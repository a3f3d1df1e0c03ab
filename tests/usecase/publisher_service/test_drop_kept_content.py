"""Content that may have gone out is kept while its run lasts, and no longer."""

from datetime import timedelta

from publisher_service.application.drop_kept_content import DropKeptContent
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start


async def test_kept_content_is_dropped_only_after_its_run_has_ended(start: Start) -> None:
    async with start(unknown_settle=timedelta(seconds=60), retry_first=timedelta(seconds=60)) as rig:
        drop = DropKeptContent(rig.database)
        await rig.connect()
        await rig.sandbox.faults({"fault": "reset_before_effect", "count": 1})
        await rig.save_draft("d1", said="first")
        await rig.go("d1")
        await rig.in_state("UNKNOWN", "d1")
        assert (await drop(), await kept(rig)) == (False, 1)

        await rig.write("update post_job set next_action_time = now()")
        await rig.in_state("WAITING", "d1")
        assert (await drop(), await kept(rig)) == (False, 1)

        await rig.save_draft("d1", said="second", revision=2)
        await eventually(lambda: newest(rig, 2))
        await rig.write("update post_job set next_action_time = now() - interval '1 minute'")
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["first"]
        assert (await drop(), await kept(rig)) == (False, 0)


async def kept(rig: Rig) -> int:
    return len(await rig.rows("select 1 from kept_content"))


async def newest(rig: Rig, revision: int) -> bool:
    (content,) = await rig.rows("select revision from content")
    return bool(content.revision == revision)
