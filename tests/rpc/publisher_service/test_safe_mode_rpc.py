from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from servicekit.pg.database import Database
from servicekit.rpc import fault_from_error
from servicekit.timestamps import moment

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_admin_service_pb2_grpc import PublisherAdminServiceAsyncStub

ENTERED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_ENTER = text("""
    insert into safe_mode (number, active, reason, enter_time, restored_time, mark_time, step)
    values (1, true, 'MARK_AHEAD', :entered, :restored, :marked, :step)
""")


async def enter(database: Database, step: str) -> None:
    times = {"entered": ENTERED, "restored": ENTERED - timedelta(hours=2), "marked": ENTERED - timedelta(minutes=1)}
    async with database.transaction() as tx:
        await tx.connection.execute(_ENTER, {**times, "step": step})


async def test_there_is_no_safe_mode_without_a_restore(admin: "PublisherAdminServiceAsyncStub") -> None:
    answer = await admin.GetSafeMode(pb.GetSafeModeRequest())
    assert not answer.HasField("safe_mode")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await admin.LeaveSafeMode(pb.LeaveSafeModeRequest(operator="ann"))
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert fault_from_error(refused.value).reason == "NOT_IN_SAFE_MODE"


async def test_the_safe_mode_is_shown_and_left_once(
    admin: "PublisherAdminServiceAsyncStub", database: Database
) -> None:
    await enter(database, "LOOKS")
    shown = (await admin.GetSafeMode(pb.GetSafeModeRequest())).safe_mode
    assert (shown.active, shown.reason) == (True, "MARK_AHEAD")
    assert moment(shown.restored_time) == ENTERED - timedelta(hours=2)
    assert not shown.HasField("leave_time")
    request = pb.LeaveSafeModeRequest(operator="ann", request_id="leave")
    left = await admin.LeaveSafeMode(request)
    assert (left.safe_mode.active, left.safe_mode.left_by) == (False, "ann")
    assert await admin.LeaveSafeMode(request) == left
    assert (await admin.GetSafeMode(pb.GetSafeModeRequest())).safe_mode == left.safe_mode


@pytest.mark.parametrize("force", [False, True])
async def test_nobody_leaves_before_it_is_known_what_is_in_question(
    admin: "PublisherAdminServiceAsyncStub", database: Database, force: bool
) -> None:
    await enter(database, "JOBS")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await admin.LeaveSafeMode(pb.LeaveSafeModeRequest(operator="ann", force=force))
    fault = fault_from_error(refused.value)
    assert (fault.reason, fault.metadata["step"]) == ("RECONCILIATION_OPEN", "JOBS")


@pytest.mark.parametrize("operator", ["", "  "])
async def test_who_leaves_must_be_named(admin: "PublisherAdminServiceAsyncStub", operator: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await admin.LeaveSafeMode(pb.LeaveSafeModeRequest(operator=operator))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
