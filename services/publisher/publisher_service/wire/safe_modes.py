"""The safe mode, as operators see it."""

from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from publisher_service.domain.safe_mode import SafeMode, Summary
from servicekit.timestamps import timestamp

Shown = tuple[SafeMode, Summary]


def get_safe_mode_response(shown: Shown | None) -> pb.GetSafeModeResponse:
    return pb.GetSafeModeResponse(safe_mode=_safe_mode(shown) if shown else None)


def leave_safe_mode_response(shown: Shown) -> pb.LeaveSafeModeResponse:
    return pb.LeaveSafeModeResponse(safe_mode=_safe_mode(shown))


def _safe_mode(shown: Shown) -> pb.SafeMode:
    mode, summary = shown
    return pb.SafeMode(
        active=mode.active,
        reason=mode.reason,
        enter_time=timestamp(mode.enter_time),
        restored_time=timestamp(mode.restored_time),
        mark_time=timestamp(mode.mark_time),
        summary=pb.SafeModeSummary(
            open=summary.open,
            published=summary.published,
            absent=summary.absent,
            needs_attention=summary.needs_attention,
            recreated=summary.recreated,
            untouched=summary.untouched,
        ),
        leave_time=timestamp(mode.leave_time),
        left_by=mode.left_by,
    )
