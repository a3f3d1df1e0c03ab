"""Notifications, and their deliveries."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.notification_lines import LineKey
from publisher_service.domain.delivery import MAIL, Delivery, DeliveryFilter, DeliveryState
from publisher_service.domain.fan_out import MOST_ITEMS
from publisher_service.domain.notification import Notification, NotificationKind

_NOTIFICATION = "organization_id, id, kind, subject_id, occasion, social_account_id, brand_id, time, facts"
_COLUMNS = (
    "organization_id",
    "id",
    "notification_id",
    "kind",
    "receiver",
    "email",
    "name",
    "brand_id",
    "state",
    "due_time",
    "expire_time",
    "attempts",
    "items",
    "error_reason",
    "error_message",
    "create_time",
    "update_time",
    "end_time",
)
_DELIVERY = ", ".join(_COLUMNS)
_MUTABLE = (
    "state",
    "due_time",
    "expire_time",
    "attempts",
    "error_reason",
    "error_message",
    "update_time",
    "end_time",
)
_IS_DELIVERY = "organization_id = :organization_id and id = :id"
_TYPES: Final[Mapping[str, str]] = {
    "due_time": "timestamptz",
    "expire_time": "timestamptz",
    "attempts": "integer",
    "items": "integer",
    "create_time": "timestamptz",
    "update_time": "timestamptz",
    "end_time": "timestamptz",
}

_INSERT_NOTIFICATIONS = text(f"""
    insert into notification ({_NOTIFICATION}, create_time)
    select *, cast(:now as timestamptz) from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:kinds as text[]), cast(:subject_ids as text[]),
        cast(:occasions as text[]), cast(:account_ids as text[]), cast(:brand_ids as text[]),
        cast(:times as timestamptz[]), cast(:facts as jsonb[])
    ) as new
    order by 1, 2
    on conflict do nothing returning organization_id, id
""")
# A digest that waits grows; it cannot have been sent, because its time is ahead of the lock of its line.
_INSERT = text(f"""
    insert into delivery as known ({_DELIVERY})
    select {_DELIVERY} from unnest(
        {", ".join(f"cast(:{name}s as {_TYPES.get(name, 'text')}[])" for name in _COLUMNS)}
    ) as new ({_DELIVERY})
    order by organization_id, id
    on conflict (organization_id, id) do update set items = known.items + excluded.items
    where excluded.kind = 'DIGEST'
    returning organization_id, id, receiver, state, due_time
""")
_INSERT_ITEMS = text("""
    insert into digest_item (organization_id, delivery_id, notification_id)
    select new.organization_id, new.delivery_id, new.notification_id
    from unnest(
        cast(:organization_ids as text[]), cast(:delivery_ids as text[]), cast(:notification_ids as text[]),
        cast(:places as integer[])
    ) as new (organization_id, delivery_id, notification_id, place)
    cross join lateral (
        select count(*) as known from (
            select from digest_item
            where organization_id = new.organization_id and delivery_id = new.delivery_id limit :most
        ) as items
    ) as c
    where c.known + new.place <= :most
    order by 1, 2, 3
    on conflict do nothing
""")
_DUE = text(f"""
    select {", ".join(f"d.{name}" for name in _COLUMNS)}
    from unnest(cast(:organization_ids as text[]), cast(:receivers as text[])) as line (of_organization, of_receiver)
    cross join lateral (
        select {_DELIVERY} from delivery
        where organization_id = line.of_organization and receiver = line.of_receiver and state = 'WAITING'
            and due_time <= :now
        order by due_time, id limit :most
    ) as d
    order by d.due_time, d.id
""")
_NOTIFICATIONS_OF = text(f"""
    select w.of_delivery as delivery_id, found.*
    from unnest(cast(:organization_ids as text[]), cast(:delivery_ids as text[]), cast(:notification_ids as text[]))
        as w (of_organization, of_delivery, of_notification)
    cross join lateral (
        select {_NOTIFICATION} from notification
        where organization_id = w.of_organization and id = w.of_notification limit 1
    ) as found
""")
_ITEMS_OF = text(f"""
    select w.of_delivery as delivery_id, found.*
    from unnest(cast(:organization_ids as text[]), cast(:delivery_ids as text[])) as w (of_organization, of_delivery)
    join digest_item i on i.organization_id = w.of_organization and i.delivery_id = w.of_delivery
    cross join lateral (
        select {_NOTIFICATION} from notification
        where organization_id = i.organization_id and id = i.notification_id limit 1
    ) as found
    order by found.time, found.id
""")
_LOCK = text(f"select {_DELIVERY} from delivery where {_IS_DELIVERY} for update")
_GET = text(f"select {_DELIVERY} from delivery where {_IS_DELIVERY}")
_SAVE = text(f"update delivery set {', '.join(f'{name} = :{name}' for name in _MUTABLE)} where {_IS_DELIVERY}")
_OF_RECEIVER = "organization_id = :organization_id and receiver = :receiver"
_PAUSE = text(f"""
    update delivery set state = 'PAUSED', update_time = :now where {_OF_RECEIVER} and state = 'WAITING'
""")
# What has waited for too long before its first attempt is skipped as it would be in its turn.
_RESUME = text(f"""
    update delivery set state = 'WAITING', due_time = :now, update_time = :now where {_OF_RECEIVER} and state = 'PAUSED'
""")
_CANCEL = text(f"""
    update delivery set state = 'CANCELED', update_time = :now, end_time = :now
    where {_OF_RECEIVER} and state in ('WAITING', 'PAUSED')
""")
_COUNT_TESTS = text("""
    select count(*) from delivery where organization_id = :organization_id and kind = 'TEST' and state = 'WAITING'
""")
_PAGE = f"""
    select {", ".join(f"d.{name}" for name in _COLUMNS)}, coalesce(n.subject_id, '') as subject_id
    from (
        select {_DELIVERY} from delivery where organization_id = :organization_id {{conditions}}
        order by create_time desc, id desc limit :limit
    ) as d
    left join lateral (
        select subject_id from notification where organization_id = d.organization_id and id = d.notification_id limit 1
    ) as n on true
    order by d.create_time desc, d.id desc
"""
_STATE_WITHOUT_MAIL = "case when receiver = '' and state = 'WAITING' then 'OFF' else state end"
_DROP = text("""
    with gone as (
        delete from delivery where (organization_id, id) in (
            select organization_id, id from delivery where create_time < :before order by create_time limit :limit
        )
        returning organization_id, id
    ), items as (
        delete from digest_item using gone
        where digest_item.organization_id = gone.organization_id and digest_item.delivery_id = gone.id
    )
    select count(*) from gone
""")
_DROP_NOTIFICATIONS = text("""
    delete from notification where (organization_id, id) in (
        select organization_id, id from notification where create_time < :before order by create_time limit :limit
    )
""")


async def insert_notifications(
    connection: AsyncConnection, notifications: Sequence[Notification], *, now: datetime
) -> list[Notification]:
    """Returns those that are new; the others are known to somebody already."""
    unique = list({(each.organization_id, each.id): each for each in notifications}.values())
    if not unique:
        return []
    names = {
        "organization_ids": [each.organization_id for each in unique],
        "ids": [each.id for each in unique],
        "kinds": [each.kind for each in unique],
        "subject_ids": [each.subject_id for each in unique],
        "occasions": [each.occasion for each in unique],
        "account_ids": [each.social_account_id for each in unique],
        "brand_ids": [each.brand_id for each in unique],
        "times": [each.time for each in unique],
        "facts": [json.dumps(each.facts) for each in unique],
        "now": now,
    }
    new = {(row.organization_id, row.id) for row in await connection.execute(_INSERT_NOTIFICATIONS, names)}
    return [each for each in unique if (each.organization_id, each.id) in new]


async def insert_deliveries(
    connection: AsyncConnection, deliveries: Sequence[Delivery], items: Mapping[Key, Sequence[str]]
) -> dict[LineKey, datetime]:
    """Stores deliveries, and what digests join; returns when each line has something to send."""
    if not deliveries:
        return {}
    values = [_values(each) for each in deliveries]
    names = {f"{name}s": [each[name] for each in values] for name in _COLUMNS}
    due: dict[LineKey, datetime] = {}
    for row in await connection.execute(_INSERT, names):
        if row.state == DeliveryState.WAITING:
            line = (row.organization_id, row.receiver)
            due[line] = min(due.get(line, row.due_time), row.due_time)
    await _insert_items(connection, items)
    return due


async def _insert_items(connection: AsyncConnection, items: Mapping[Key, Sequence[str]]) -> None:
    rows = [(*digest, each, place) for digest, joined in items.items() for place, each in enumerate(joined, 1)]
    if rows:
        organizations, digests, notifications, places = (list(column) for column in zip(*rows, strict=True))
        names = {
            "organization_ids": organizations,
            "delivery_ids": digests,
            "notification_ids": notifications,
            "places": places,
            "most": MOST_ITEMS,
        }
        await connection.execute(_INSERT_ITEMS, names)


async def due_deliveries(
    connection: AsyncConnection, lines: Sequence[LineKey], *, most: int, now: datetime
) -> dict[LineKey, list[Delivery]]:
    """Returns the next deliveries of each line, at most `most` of each."""
    names = {
        "organization_ids": [line[0] for line in lines],
        "receivers": [line[1] for line in lines],
        "most": most,
        "now": now,
    }
    found: dict[LineKey, list[Delivery]] = {}
    for row in await connection.execute(_DUE, names):
        delivery = _delivery(row)
        found.setdefault((delivery.organization_id, delivery.receiver), []).append(delivery)
    return found


async def notifications_of(
    connection: AsyncConnection, deliveries: Iterable[Delivery]
) -> dict[Key, tuple[Notification, ...]]:
    """Returns what each delivery is about, in the order in which it happened."""
    asked = list(deliveries)
    found: dict[Key, list[Notification]] = {each.key: [] for each in asked}
    for statement, of_digests in ((_NOTIFICATIONS_OF, False), (_ITEMS_OF, True)):
        wanted = [each for each in asked if (each.kind is NotificationKind.DIGEST) is of_digests]
        names = {
            "organization_ids": [each.organization_id for each in wanted],
            "delivery_ids": [each.id for each in wanted],
            "notification_ids": [each.notification_id for each in wanted],
        }
        for row in await connection.execute(statement, names) if wanted else ():
            found[row.organization_id, row.delivery_id].append(_notification(row))
    return {key: tuple(each) for key, each in found.items()}


async def lock_delivery(connection: AsyncConnection, organization_id: str, delivery_id: str) -> Delivery | None:
    row = (await connection.execute(_LOCK, {"organization_id": organization_id, "id": delivery_id})).one_or_none()
    return None if row is None else _delivery(row)


async def get_delivery(connection: AsyncConnection, organization_id: str, delivery_id: str) -> Delivery | None:
    row = (await connection.execute(_GET, {"organization_id": organization_id, "id": delivery_id})).one_or_none()
    return None if row is None else _delivery(row)


async def save_delivery(connection: AsyncConnection, delivery: Delivery) -> None:
    """Writes a delivery that this transaction has locked, or whose line it has."""
    await connection.execute(_SAVE, _values(delivery))


async def pause_deliveries(connection: AsyncConnection, line: LineKey, *, now: datetime) -> None:
    await connection.execute(_PAUSE, _of(line) | {"now": now})


async def resume_deliveries(connection: AsyncConnection, line: LineKey, *, now: datetime) -> None:
    await connection.execute(_RESUME, _of(line) | {"now": now})


async def cancel_deliveries(connection: AsyncConnection, line: LineKey, *, now: datetime) -> None:
    await connection.execute(_CANCEL, _of(line) | {"now": now})


async def count_waiting_tests(connection: AsyncConnection, organization_id: str) -> int:
    count: int = (await connection.execute(_COUNT_TESTS, {"organization_id": organization_id})).scalar_one()
    return count


async def list_deliveries(
    connection: AsyncConnection,
    wanted: DeliveryFilter,
    *,
    is_mail_on: bool,
    before: tuple[datetime, str] | None,
    limit: int,
) -> list[tuple[Delivery, str]]:
    """Lists deliveries with their subjects, newest first, behind the (create_time, id) that ended the page before.

    Mails that wait are OFF while no mail is sent.
    """
    conditions, names = "", {"organization_id": wanted.organization_id, "limit": limit}
    if wanted.receiver is not None:
        conditions += " and receiver = :receiver"
        names["receiver"] = wanted.receiver
    if wanted.states:
        state = "state" if is_mail_on else _STATE_WITHOUT_MAIL
        conditions += f" and {state} = any(cast(:states as text[]))"
        names["states"] = [state.value for state in wanted.states]
    if before:
        conditions += " and (create_time, id) < (:before_time, :before_id)"
        names |= {"before_time": before[0], "before_id": before[1]}
    rows = await connection.execute(text(_PAGE.format(conditions=conditions)), names)
    return [(_shown(_delivery(row), is_mail_on), row.subject_id) for row in rows]


async def drop_deliveries(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    """Drops the oldest deliveries with what they join; returns how many."""
    count: int = (await connection.execute(_DROP, {"before": before, "limit": limit})).scalar_one()
    return count


async def drop_notifications(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    return (await connection.execute(_DROP_NOTIFICATIONS, {"before": before, "limit": limit})).rowcount


def _shown(delivery: Delivery, is_mail_on: bool) -> Delivery:
    waits = delivery.receiver == MAIL and delivery.state is DeliveryState.WAITING
    return replace(delivery, state=DeliveryState.OFF) if waits and not is_mail_on else delivery


def _of(line: LineKey) -> dict[str, Any]:
    return {"organization_id": line[0], "receiver": line[1]}


def _values(delivery: Delivery) -> dict[str, Any]:
    return {name: getattr(delivery, name) for name in _COLUMNS}


def _delivery(row: Row[Any]) -> Delivery:
    fields = {name: getattr(row, name) for name in _COLUMNS}
    return Delivery(**fields | {"kind": NotificationKind(fields["kind"]), "state": DeliveryState(fields["state"])})


def _notification(row: Row[Any]) -> Notification:
    known = Notification(
        organization_id=row.organization_id,
        kind=NotificationKind(row.kind),
        subject_id=row.subject_id,
        occasion=row.occasion,
        social_account_id=row.social_account_id,
        brand_id=row.brand_id,
        time=row.time,
    )
    return replace(known, facts=row.facts)
