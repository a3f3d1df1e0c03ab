from publisher_service.application.read_safe_mode import ReadSafeMode
from tests.usecase.publisher_service.replica import Replica
from tests.usecase.publisher_service.restoring import reconcile, restored, scheduled


async def test_without_a_restore_there_is_no_safe_mode(replica: Replica) -> None:
    assert await ReadSafeMode(replica.database)() is None


async def test_the_safe_mode_counts_what_is_in_question(replica: Replica) -> None:
    await scheduled(replica, 2)
    await restored(replica)
    await reconcile(replica)
    found = await ReadSafeMode(replica.database)()
    assert found is not None
    mode, summary = found
    assert (mode.active, mode.reason, summary.open) == (True, "MARK_AHEAD", 2)
