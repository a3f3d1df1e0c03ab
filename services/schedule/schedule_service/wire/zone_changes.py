"""Translates zone changes to protobuf."""

from collections.abc import Iterable, Mapping

from civil.zones import tzdata_version
from postflow.schedule.v1 import schedule_admin_service_pb2 as messages
from schedule_service.domain.zone_changes.moved_times import MovedTime
from schedule_service.domain.zone_changes.zone_change import Kind, Place, ZoneChange

_KINDS = {kind: getattr(messages, f"ZONE_CHANGE_KIND_{kind}") for kind in Kind}


def listed(changes: Iterable[ZoneChange]) -> messages.ListZoneChangesResponse:
    return messages.ListZoneChangesResponse(zone_changes=map(_shown, changes), tzdata_version=tzdata_version())


def applied(moved: Mapping[Kind, int], *, done: bool) -> messages.ApplyZoneChangesResponse:
    return messages.ApplyZoneChangesResponse(
        account_schedules=moved.get(Kind.ACCOUNT_SCHEDULE, 0),
        schedule_rules=moved.get(Kind.SCHEDULE_RULE, 0),
        timers=moved.get(Kind.TIMER, 0),
        done=done,
        tzdata_version=tzdata_version(),
    )


def cursor(position: tuple[Kind, Place]) -> tuple[str, str, str]:
    kind, place = position
    return kind, *place


def position(cursor: tuple[str | int, ...] | None) -> tuple[Kind, Place] | None:
    """Returns the position that `cursor` wrote into a token."""
    if cursor is None:
        return None
    kind, organization_id, id_ = map(str, cursor)
    return Kind(kind), Place(organization_id, id_)


def _shown(change: ZoneChange) -> messages.ZoneChange:
    return messages.ZoneChange(
        organization_id=change.place.organization_id,
        kind=_KINDS[change.kind],
        id=change.place.id,
        time_zone=change.zone_release.time_zone,
        announced_tzdata_version=change.zone_release.tzdata_version,
        moved_times=map(_moved_time, change.moved_times),
    )


def _moved_time(moved: MovedTime) -> messages.MovedTime:
    return messages.MovedTime(
        nominal_local_time=moved.nominal.isoformat(timespec="minutes"), old_time=moved.old, new_time=moved.new
    )
