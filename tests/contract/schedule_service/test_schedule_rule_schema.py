"""The table of rules refuses invalid rows."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from servicekit.pg.database import Database

_INSERT = """
    insert into schedule_rule (organization_id, id, brand_id, name, time_zone, weekly_slots, rrule, start_minute,
        start_date, end_date, excluded_dates, channels, category_id, asset_policy, enabled, tzdata_version, version,
        create_time, update_time)
    values ('acme', {id}, 'brand', '', 'UTC', {slots}, {rrule}, {start_minute}, {start_date}, {end_date}, '{{}}',
        {channels}, '', {policy}, true, '', {version}, now(), now())
"""
_WEEKLY = {
    "id": "'weekly'",
    "slots": "'{0, 10079}'",
    "rrule": "''",
    "start_minute": "null",
    "start_date": "null",
    "end_date": "'2026-03-02'",
    "channels": "'{facebook}'",
    "policy": "'OPTIONAL'",
    "version": "1",
}
_BY_RRULE = _WEEKLY | {
    "id": "'rrule'",
    "slots": "'{}'",
    "rrule": "'FREQ=DAILY'",
    "start_minute": "1439",
    "start_date": "'2026-03-02'",
}


@pytest.mark.parametrize(
    "row",
    [
        _WEEKLY | {"slots": "'{-1}'"},
        _WEEKLY | {"slots": "'{10080}'"},
        _WEEKLY | {"slots": "'{}'"},
        _WEEKLY | {"rrule": "'FREQ=DAILY'", "start_date": "'2026-03-02'"},
        _WEEKLY | {"start_minute": "540"},
        _WEEKLY | {"start_date": "'2026-03-03'"},
        _WEEKLY | {"channels": "'{}'"},
        _WEEKLY | {"policy": "'SOMETIMES'"},
        _WEEKLY | {"version": "0"},
        _BY_RRULE | {"start_minute": "1440"},
        _BY_RRULE | {"start_minute": "-1"},
        _BY_RRULE | {"start_date": "null"},
    ],
)
async def test_the_database_refuses_rules_with_no_or_two_recurrences(database: Database, row: dict[str, str]) -> None:
    async with database.statement() as connection:
        with pytest.raises(IntegrityError):
            await connection.execute(text(_INSERT.format_map(row)))


async def test_the_database_accepts_both_kinds_of_rule(database: Database) -> None:
    async with database.statement() as connection:
        for row in (_WEEKLY, _BY_RRULE, _BY_RRULE | {"id": "'open'", "start_minute": "null"}):
            await connection.execute(text(_INSERT.format_map(row)))
