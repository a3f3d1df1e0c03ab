"""The SQL of schedule rules. A deleted rule keeps its row, but no query here returns it."""

from datetime import time
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import stored_zone
from schedule_service.adapters.postgres.weekly_slots import minutes, slots
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms

_RULES = """
    select organization_id, id, brand_id, name, time_zone, weekly_slots, rrule, start_minute, start_date, end_date,
        excluded_dates, channels, category_id, asset_policy, enabled, tzdata_version, version, create_time, update_time
    from schedule_rule where organization_id = :organization_id and delete_time is null
"""
_FIND = text(f"{_RULES} and id = :id")
_LOCK = text(f"{_RULES} and id = :id for update")
# The approximate bytes of a rule in a response; a page ends before the first rule that would not fit.
_BYTES = "5 * cardinality(weekly_slots) + 12 * cardinality(excluded_dates)"
_ENOUGH_BYTES = 256 * 1024
_PAGE = f"""
    select * from (
        select *, sum({_BYTES}) over (order by id rows between unbounded preceding and 1 preceding) as above
        from ({_RULES} %s and id > :after order by id limit :size) as wanted
    ) as page
    where above is null or above < {_ENOUGH_BYTES} order by id
"""
_LIST = text(_PAGE % "")
_LIST_OF_BRAND = text(_PAGE % "and brand_id = :brand_id")
_ENABLED = text(f"{_RULES} and brand_id = :brand_id and enabled and id > :after order by id limit :size")
_STEP = 10
# Locks the brand's name, not its rows, because there may be none yet.
_LOCK_BRAND = text("""
    select pg_advisory_xact_lock(hashtextextended('brand/' || :organization_id || '/' || :brand_id, 0))
""")
_COUNT = text("""
    select count(*) from schedule_rule
    where organization_id = :organization_id and brand_id = :brand_id and delete_time is null
""")
_INSERT = text("""
    insert into schedule_rule (organization_id, id, brand_id, name, time_zone, weekly_slots, rrule, start_minute,
        start_date, end_date, excluded_dates, channels, category_id, asset_policy, enabled, tzdata_version, version,
        create_time, update_time)
    values (:organization_id, :id, :brand_id, :name, :time_zone, cast(:weekly_slots as smallint[]), :rrule,
        :start_minute, :start_date, :end_date, cast(:excluded_dates as date[]), cast(:channels as text[]),
        :category_id, :asset_policy, :enabled, :tzdata_version, :version, :create_time, :update_time)
    on conflict do nothing
""")
_SAVE = text("""
    update schedule_rule set name = :name, time_zone = :time_zone, weekly_slots = cast(:weekly_slots as smallint[]),
        rrule = :rrule, start_minute = :start_minute, start_date = :start_date, end_date = :end_date,
        excluded_dates = cast(:excluded_dates as date[]), channels = cast(:channels as text[]),
        category_id = :category_id, asset_policy = :asset_policy, enabled = :enabled,
        tzdata_version = :tzdata_version, version = :version, update_time = :update_time, delete_time = :delete_time
    where organization_id = :organization_id and id = :id
""")


async def find_rule(connection: AsyncConnection, organization_id: str, rule_id: str) -> ScheduleRule | None:
    row = (await connection.execute(_FIND, {"organization_id": organization_id, "id": rule_id})).one_or_none()
    return _rule(row) if row else None


async def lock_rule(connection: AsyncConnection, organization_id: str, rule_id: str) -> ScheduleRule | None:
    """Locks the rule until the end of the transaction."""
    row = (await connection.execute(_LOCK, {"organization_id": organization_id, "id": rule_id})).one_or_none()
    return _rule(row) if row else None


async def list_rules(
    connection: AsyncConnection, organization_id: str, *, brand_id: str, after: str, size: int
) -> list[ScheduleRule]:
    """Lists rules in the order of their ids, beginning after `after`; an empty brand means those of all.

    Returns fewer if they are large, but always more than fit into one response.
    """
    wanted = {"organization_id": organization_id, "after": after, "size": size}
    if brand_id:
        rows = await connection.execute(_LIST_OF_BRAND, wanted | {"brand_id": brand_id})
    else:
        rows = await connection.execute(_LIST, wanted)
    return list(map(_rule, rows))


async def list_enabled_rules(connection: AsyncConnection, organization_id: str, brand_id: str) -> list[ScheduleRule]:
    """Lists the enabled rules of a brand in the order of their ids.

    Reads ten at a time: half a million excluded dates at once would block every other call. Ten rules of the largest
    size take about two milliseconds, and other calls run in between.
    """
    names = {"organization_id": organization_id, "brand_id": brand_id, "size": _STEP}
    rules: list[ScheduleRule] = []
    while True:
        rows = (await connection.execute(_ENABLED, names | {"after": rules[-1].id if rules else ""})).all()
        rules += map(_rule, rows)
        if len(rows) < _STEP:
            return rules


async def lock_brand(connection: AsyncConnection, organization_id: str, brand_id: str) -> None:
    """Keeps others from inserting rules of this brand until the end of the transaction."""
    await connection.execute(_LOCK_BRAND, {"organization_id": organization_id, "brand_id": brand_id})


async def count_rules(connection: AsyncConnection, organization_id: str, brand_id: str) -> int:
    rules = await connection.execute(_COUNT, {"organization_id": organization_id, "brand_id": brand_id})
    return int(rules.scalar_one())


async def insert_rule(connection: AsyncConnection, rule: ScheduleRule) -> bool:
    """Returns False if the id is in use, or was used by a deleted rule."""
    inserted = await connection.execute(_INSERT, _columns(rule) | {"create_time": rule.create_time})
    return inserted.rowcount == 1


async def save_rule(connection: AsyncConnection, rule: ScheduleRule) -> None:
    await connection.execute(_SAVE, _columns(rule) | {"delete_time": rule.delete_time})


def _columns(rule: ScheduleRule) -> dict[str, object]:
    terms = rule.terms
    return {
        "organization_id": rule.organization_id,
        "id": rule.id,
        "brand_id": rule.brand_id,
        "name": terms.name,
        "time_zone": terms.time_zone.name,
        "weekly_slots": minutes(terms.weekly_slots),
        "rrule": terms.rrule,
        "start_minute": None if terms.start_time is None else terms.start_time.hour * 60 + terms.start_time.minute,
        "start_date": terms.start_date,
        "end_date": terms.end_date,
        "excluded_dates": list(terms.excluded_dates),
        "channels": list(terms.channels),
        "category_id": terms.category_id,
        "asset_policy": terms.asset_policy,
        "enabled": terms.enabled,
        "tzdata_version": rule.tzdata_version,
        "version": rule.version,
        "update_time": rule.update_time,
    }


def _rule(row: Row[Any]) -> ScheduleRule:
    return ScheduleRule(
        organization_id=row.organization_id,
        id=row.id,
        brand_id=row.brand_id,
        terms=Terms(
            name=row.name,
            time_zone=stored_zone(row.time_zone),
            weekly_slots=slots(row.weekly_slots),
            rrule=row.rrule,
            start_time=None if row.start_minute is None else time(*divmod(row.start_minute, 60)),
            start_date=row.start_date,
            end_date=row.end_date,
            excluded_dates=tuple(row.excluded_dates),
            channels=tuple(row.channels),
            category_id=row.category_id,
            asset_policy=AssetPolicy(row.asset_policy),
            enabled=row.enabled,
        ),
        version=row.version,
        create_time=row.create_time,
        update_time=row.update_time,
        tzdata_version=row.tzdata_version,
    )
