"""Work that leads a publisher through the steps of a safe mode."""

from datetime import datetime

import asyncpg
import grpc

from postflow.publisher.v1 import publisher_admin_service_pb2
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.orders import CLASSES, Caller
from testkit.stack.scene import UNANSWERED, VICTIM, Scene

# Both processes have asked for commands, and the one that is stopped gets some of them.
_COMMANDS = 8
_AHEAD = "ahead"
_KNOWN = 9
"""The version that Queue knows of the jobs of drafts of that name."""
_PROVABLE = ("keyed", "lookup")
"""Classes of which every outcome is soon known."""
_ALONE = 10.0


async def restored(scene: Scene, number: int) -> None:
    """The database forgets how far the processes have come, and the victim reconciles it."""
    await _forget(scene, number)
    async with scene.alone():
        await scene.until_hit(within=_ALONE)


async def _forget(scene: Scene, number: int) -> None:
    """Posts wait, which may be out for all that an older copy knows."""
    orders = scene.orders
    await orders.faults("status", *_PROVABLE, status=429, retry_after=3, count=1)
    await orders.post_on_each(scene.other, f"d{number}", *_PROVABLE)
    for account in _PROVABLE:
        await orders.until(scene.other, f"d{number}-{account}", "WAITING")
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        await connection.execute("delete from claim_mark")
    finally:
        await connection.close()


async def ahead(scene: Scene, number: int) -> None:
    """Commands know post jobs that the database does not have; the victim sees that first."""
    if number:
        await left(scene)
    async with scene.alone():
        for each in range(_COMMANDS):
            draft = f"{_AHEAD}{number}-{each}"
            await scene.orders.write(draft, "keyed")
            await scene.orders.command(draft, "keyed", emission=2, known_job_version=_KNOWN)
        await scene.until_hit(within=_ALONE / 2)


async def _is(scene: Scene, condition: str) -> bool:
    """Returns whether there is such a safe mode."""
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        query = f"select exists (select from safe_mode where {condition})"  # noqa: S608 - conditions from here
        return bool(await connection.fetchval(query))
    finally:
        await connection.close()


async def leaving(scene: Scene, number: int) -> None:
    await _forget(scene, number)
    await eventually(lambda: _is_certain(scene), within=60)
    await scene.ask(lambda caller: _leave(caller, f"leave-{number}"))
    await left(scene)


async def _is_certain(scene: Scene) -> bool:
    """Returns whether every step is done and every outcome known: nothing has to be left to a person."""
    found = await scene.other.admin.GetSafeMode(publisher_admin_service_pb2.GetSafeModeRequest())
    return not found.safe_mode.summary.open and await _is(scene, "active and step = 'LOOKS'")


async def left(scene: Scene) -> None:
    """Leaves the safe mode until no command begins it again, and posts.

    Commands that were lost with a process would come again half a minute later. Queue repeats them earlier.
    """
    for draft in [draft for draft in scene.orders.slots if draft.startswith(_AHEAD)]:
        await scene.orders.command(draft, "keyed", emission=3, known_job_version=_KNOWN)
    since = SystemClock().now()
    await eventually(lambda: _have_beaten(scene, since), within=30)
    await eventually(lambda: _is_calm(scene), within=90)
    await scene.orders.post_on_each(scene.other, f"d{100 + len(scene.orders.slots)}", *CLASSES)


async def _have_beaten(scene: Scene, since: datetime) -> bool:
    """Returns whether each process has looked at the database: one that was stopped may know a mark of its own."""
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        beaten = await connection.fetchval("select count(*) from claim_mark where time > $1", since)
    finally:
        await connection.close()
    return bool(beaten >= 1 + scene.stack.running(VICTIM))


async def _is_calm(scene: Scene) -> bool:
    """Returns whether every post of a command that was ahead is out; leaves the safe mode if it is active."""
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        open_posts = await connection.fetchval(
            "select count(*) from post_job"
            " where organization_id = $1 and starts_with(draft_id, $2) and state <> 'PUBLISHED'",
            scene.orders.organization_id,
            _AHEAD,
        )
    finally:
        await connection.close()
    return await _has_left(scene) and not open_posts


async def _has_left(scene: Scene) -> bool:
    try:
        await _leave(scene.other, "")
    except grpc.aio.AioRpcError as error:
        if error.code() not in (grpc.StatusCode.FAILED_PRECONDITION, *UNANSWERED):
            raise
        return not await _is(scene, "active")
    return True


async def _leave(caller: Caller, request_id: str) -> None:
    await caller.admin.LeaveSafeMode(
        publisher_admin_service_pb2.LeaveSafeModeRequest(operator="ann", request_id=request_id)
    )
