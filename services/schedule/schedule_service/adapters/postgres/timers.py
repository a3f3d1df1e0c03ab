"""The SQL of timers that serves RPCs. The engine's statements are in `due_timers`."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.cron import Dst
from civil.zones import stored_zone
from schedule_service.domain.timers.timer import MisfirePolicy, Timer, TimerState

# The most payload bytes on one page; more would not fit into a response.
_ENOUGH_BYTES = 256 * 1024
_MOST_LISTED = 201
_DELETED_AT_ONCE = 5000

_COLUMNS = """
    organization_id, id, topic, payload, fire_time, cron, time_zone, dst_policy, repeat_until, misfire_policy,
    catch_up_interval, skip_after, auto_remove, paused, due_time, sleep_until, fence, fire_count, last_fire_time,
    last_occurrence_key, finish_time, tzdata_version, traceparent, version, create_time, update_time
"""
_FIND = f"select {_COLUMNS} from timer where organization_id = :organization_id and id = :id"
_GET = text(_FIND)
_LOCK = text(f"{_FIND} for update")
_INSERT = text(f"""
    insert into timer (attempts, {_COLUMNS})
    values (0, :organization_id, :id, :topic, :payload, :fire_time, :cron, :time_zone, :dst_policy, :repeat_until,
        :misfire_policy, :catch_up_interval, :skip_after, :auto_remove, :paused, :due_time, :sleep_until, :fence,
        :fire_count, :last_fire_time, :last_occurrence_key, :finish_time, :tzdata_version, :traceparent, :version,
        :create_time, :update_time)
    on conflict do nothing
""")
_SAVE = text("""
    update timer set paused = :paused, due_time = :due_time, sleep_until = :sleep_until, fence = :fence, attempts = 0,
        finish_time = :finish_time, tzdata_version = :tzdata_version, version = :version, update_time = :update_time
    where organization_id = :organization_id and id = :id and fence = :fence_before
""")
_RECORD_MANUAL_FIRING = text(f"""
    update timer set fire_count = fire_count + 1, last_fire_time = :now
    where organization_id = :organization_id and id = :id returning {_COLUMNS}
""")
_DELETE = text("delete from timer where organization_id = :organization_id and id = :id")
_DELETE_FINISHED = text(f"""
    delete from timer where ctid = any(array(
        select ctid from timer where finish_time < :before order by finish_time limit {_DELETED_AT_ONCE}
        for update skip locked
    ))
""")
# Reads the ids of a page from an index, in order, and then looks up each timer until the page is full. Without this, a
# planner that expects few timers would read all candidates and sort them.
_PAGE = f"""
    select {_COLUMNS} from (
        select page_id, timer.*, sum(octet_length(payload))
            over (order by page_id rows between unbounded preceding and 1 preceding) as above
        from (
            select id as page_id from timer
            where organization_id = :organization_id and id > :after %s
            order by id limit {_MOST_LISTED}
        ) as page
        cross join lateral (
            select * from timer where timer.organization_id = :organization_id and timer.id = page_id offset 0
        ) as timer
    ) as page
    where above is null or above < {_ENOUGH_BYTES} order by page_id limit :size
"""
_OF_TOPIC = " and topic = :topic"
_FAULTY = " and sleep_until is null and not paused and finish_time is null"
# Repeats the conditions of the indexes on idle timers word for word. "is true" and "is false" hide the rest of the
# condition from the planner, which might otherwise read every finished timer.
_IN_STATE = {
    None: "",
    # The few faulty timers are looked up separately: else each row is read for a column that the index lacks.
    TimerState.ACTIVE: f"""
        and (paused or finish_time is not null) is false
        and id not in (select id from timer where organization_id = :organization_id{_FAULTY})
    """,
    TimerState.PAUSED: " and (paused or finish_time is not null) and (finish_time is null) is true",
    TimerState.FINISHED: " and (paused or finish_time is not null) and (finish_time is null) is false",
    TimerState.FAULTY: _FAULTY,
}
_LISTS = {
    (has_topic, state): text(_PAGE % ((_OF_TOPIC if has_topic else "") + condition))
    for has_topic in (False, True)
    for state, condition in _IN_STATE.items()
}


async def find_timer(connection: AsyncConnection, organization_id: str, timer_id: str) -> Timer | None:
    row = (await connection.execute(_GET, {"organization_id": organization_id, "id": timer_id})).one_or_none()
    return _timer(row) if row else None


async def lock_timer(connection: AsyncConnection, organization_id: str, timer_id: str) -> Timer | None:
    """Locks the timer until the end of the transaction."""
    row = (await connection.execute(_LOCK, {"organization_id": organization_id, "id": timer_id})).one_or_none()
    return _timer(row) if row else None


async def insert_timer(connection: AsyncConnection, timer: Timer) -> bool:
    """Returns False if the id is in use."""
    return (await connection.execute(_INSERT, _values(timer))).rowcount == 1


async def save_timer(connection: AsyncConnection, timer: Timer, *, before: Timer) -> bool:
    """Saves the columns that calls and zone changes alter. Returns False if the row has changed since `before`."""
    return (await connection.execute(_SAVE, _values(timer) | {"fence_before": before.fence})).rowcount == 1


async def record_manual_firing(
    connection: AsyncConnection, organization_id: str, timer_id: str, *, now: datetime
) -> Timer | None:
    """Counts a manual firing and returns the timer. Its schedule and `last_occurrence_key` stay as they are."""
    names = {"organization_id": organization_id, "id": timer_id, "now": now}
    row = (await connection.execute(_RECORD_MANUAL_FIRING, names)).one_or_none()
    return _timer(row) if row else None


async def delete_timer(connection: AsyncConnection, timer: Timer) -> None:
    await connection.execute(_DELETE, {"organization_id": timer.organization_id, "id": timer.id})


async def delete_finished_timers(connection: AsyncConnection, *, before: datetime) -> bool:
    """Deletes a batch of finished timers. Returns True if there may be more."""
    return (await connection.execute(_DELETE_FINISHED, {"before": before})).rowcount == _DELETED_AT_ONCE


async def list_timers(
    connection: AsyncConnection, organization_id: str, *, topic: str, state: TimerState | None, after: str, size: int
) -> list[Timer]:
    """Lists at most 201 timers in the order of their ids; fewer if a response cannot hold their payloads."""
    names: dict[str, object] = {"organization_id": organization_id, "after": after, "size": size}
    if topic:
        names["topic"] = topic
    return [_timer(row) for row in await connection.execute(_LISTS[bool(topic), state], names)]


def _values(timer: Timer) -> dict[str, object]:
    return {
        "organization_id": timer.organization_id,
        "id": timer.id,
        "topic": timer.topic,
        "payload": timer.payload,
        "fire_time": timer.fire_time,
        "cron": timer.cron,
        "time_zone": timer.zone.name,
        "dst_policy": timer.dst_policy,
        "repeat_until": timer.repeat_until,
        "misfire_policy": timer.misfire_policy,
        "catch_up_interval": timer.catch_up_interval,
        "skip_after": timer.skip_after,
        "auto_remove": timer.auto_remove,
        "paused": timer.paused,
        "due_time": timer.due_time,
        "sleep_until": timer.sleep_until,
        "fence": timer.fence,
        "fire_count": timer.fire_count,
        "last_fire_time": timer.last_fire_time,
        "last_occurrence_key": timer.last_occurrence_key,
        "finish_time": timer.finish_time,
        "tzdata_version": timer.tzdata_version,
        "traceparent": timer.traceparent,
        "version": timer.version,
        "create_time": timer.create_time,
        "update_time": timer.update_time,
    }


def _timer(row: Row[Any]) -> Timer:
    return Timer(
        organization_id=row.organization_id,
        id=row.id,
        topic=row.topic,
        payload=row.payload,
        fire_time=row.fire_time,
        cron=row.cron,
        zone=stored_zone(row.time_zone),
        dst_policy=Dst(row.dst_policy),
        repeat_until=row.repeat_until,
        misfire_policy=MisfirePolicy(row.misfire_policy),
        catch_up_interval=row.catch_up_interval,
        skip_after=row.skip_after,
        auto_remove=row.auto_remove,
        paused=row.paused,
        due_time=row.due_time,
        sleep_until=row.sleep_until,
        fence=row.fence,
        fire_count=row.fire_count,
        last_fire_time=row.last_fire_time,
        last_occurrence_key=row.last_occurrence_key,
        finish_time=row.finish_time,
        tzdata_version=row.tzdata_version,
        traceparent=row.traceparent,
        version=row.version,
        create_time=row.create_time,
        update_time=row.update_time,
    )
