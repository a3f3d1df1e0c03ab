"""Work that leads a publisher through the steps of a safe mode."""

import asyncpg
import grpc

from postflow.publisher.v1 import publisher_admin_service_pb2
from testkit.eventually import eventually
from testkit.stack.orders import CLASSES, Caller
from testkit.stack.scene import UNANSWERED, Scene

# Both processes have asked for commands, and the one that is stopped gets some of them.
_COMMANDS = 8


async def restored(scene: Scene, number: int) -> None:
    """The database forgets how far the processes have come. Either of them reconciles it."""
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        await connection.execute("delete from claim_mark")
    finally:
        await connection.close()
    await eventually(lambda: _is_reconciled(scene), within=30)


async def ahead(scene: Scene, number: int) -> None:
    """Commands know post jobs that the database does not have."""
    async with scene.alone():
        for each in range(_COMMANDS):
            draft = f"ahead{number}-{each}"
            await scene.orders.write(draft, "keyed")
            await scene.orders.command(draft, "keyed", emission=2, known_job_version=9)
        await eventually(lambda: _is_active(scene), within=30)


async def _is_active(scene: Scene) -> bool:
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        return bool(await connection.fetchval("select exists (select from safe_mode where active)"))
    finally:
        await connection.close()


async def _is_reconciled(scene: Scene) -> bool:
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        return bool(await connection.fetchval("select exists (select from safe_mode where active and step = 'LOOKS')"))
    finally:
        await connection.close()


async def leaving(scene: Scene, number: int) -> None:
    await restored(scene, number)
    await eventually(lambda: _is_certain(scene), within=60)
    await scene.ask(lambda caller: _leave(caller, f"leave-{number}"))
    await left(scene)


async def _is_certain(scene: Scene) -> bool:
    """Returns whether every outcome is known: nothing has to be left to a person."""
    found = await scene.other.admin.GetSafeMode(publisher_admin_service_pb2.GetSafeModeRequest())
    return found.safe_mode.active and not found.safe_mode.summary.open


async def left(scene: Scene) -> None:
    """Leaves the safe mode until no command begins it again, and posts."""
    await eventually(lambda: _is_calm(scene), within=90)
    await scene.orders.post_on_each(scene.other, f"d{100 + len(scene.orders.slots)}", *CLASSES)


async def _is_calm(scene: Scene) -> bool:
    """Returns whether every post of a command that was ahead is out; leaves the safe mode if it is active."""
    connection = await asyncpg.connect(scene.stack.database_urls["publisher"])
    try:
        open_posts = await connection.fetchval(
            "select count(*) from post_job"
            " where organization_id = $1 and draft_id like 'ahead%' and state <> 'PUBLISHED'",
            scene.orders.organization_id,
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
        return not await _is_active(scene)
    return True


async def _leave(caller: Caller, request_id: str) -> None:
    await caller.admin.LeaveSafeMode(
        publisher_admin_service_pb2.LeaveSafeModeRequest(operator="ann", request_id=request_id)
    )
