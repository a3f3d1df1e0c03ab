"""The rows of an account's limits as its next claim leaves them: it computes windows and days that are over again.

Who only reads cannot store them, so these queries take the place of the tables in the text of the claim.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from channels import action_of
from publisher_service.adapters.postgres.account_schedules import schedules_of
from publisher_service.adapters.postgres.account_tables import account_gate
from publisher_service.adapters.postgres.limit_tables import account_action
from publisher_service.domain.account_schedule import day_of, opening
from publisher_service.domain.claim import Command, send_time

_OPENING: Final = {
    name: f"case when cast(:is_refreshed as boolean) and cast(:{name} as timestamptz) is not null"
    f" then cast(:{name} as timestamptz) else stored.{name} end"
    for name in ("open_from", "open_until")
}
_NEW_DAY: Final = {
    "organization_id": "asked.organization_id",
    "social_account_id": "asked.social_account_id",
    "action": "asked.action",
    # The reservations are the truth, as for the claim.
    "used": """cast((
        select count(*) from reservation r
        where r.organization_id = asked.organization_id and r.social_account_id = asked.social_account_id
            and r.action = asked.action and r.reserve_time >= cast(:day_start as timestamptz)
            and r.reserve_time < cast(:day_end as timestamptz)
    ) as integer)""",
    "local_date": "cast(null as date)",
    "day_start": "cast(:day_start as timestamptz)",
    "day_end": "cast(:day_end as timestamptz)",
}


def _columns(table: Table, replaced: Mapping[str, str]) -> str:
    return ", ".join(f"{replaced.get(each.name, f'stored.{each.name}')} as {each.name}" for each in table.columns)


# Inside of a query that is named like a table, the name means the table.
LIMITS_AS_OF: Final = f"""
    account_gate as (
        select {_columns(account_gate, _OPENING)} from account_gate stored
        where stored.organization_id = :organization_id and stored.social_account_id = :social_account_id
    ),
    account_action as (
        select {_columns(account_action, {})} from account_action stored
        where stored.organization_id = :organization_id and stored.social_account_id = :social_account_id
            and stored.action = :action and not cast(:is_refreshed as boolean)
        union all
        select {_columns(account_action, _NEW_DAY)}
        from unnest(array[:organization_id], array[:social_account_id], array[:action])
            as asked (organization_id, social_account_id, action)
        left join account_action stored on stored.organization_id = asked.organization_id
            and stored.social_account_id = asked.social_account_id and stored.action = asked.action
        where cast(:is_refreshed as boolean)
            and (asked.action <> 'POST' or exists (select from account_gate where limited))
    )
"""


def stored_limits(command: Command) -> dict[str, object]:
    """Returns the arguments of `LIMITS_AS_OF` for the rows as they are."""
    return {
        "organization_id": command.organization_id,
        "social_account_id": command.target.social_account_id,
        "action": action_of(command.target.channel, command.target.destination),
        "is_refreshed": False,
        "open_from": None,
        "open_until": None,
        "day_start": None,
        "day_end": None,
    }


async def refreshed_limits(connection: AsyncConnection, command: Command, *, now: datetime) -> dict[str, Any]:
    """Returns the arguments of `LIMITS_AS_OF` for the rows as `refresh_limits` would leave them."""
    key = (command.organization_id, command.target.social_account_id)
    schedule = (await schedules_of(connection, [key])).get(key)
    time = send_time(command, now)
    found = opening(schedule, time) if schedule else None
    day = day_of(schedule.time_zone if schedule else "", time)
    return stored_limits(command) | {
        "is_refreshed": True,
        "open_from": found.start if found else None,
        "open_until": found.end if found else None,
        "day_start": day.start,
        "day_end": day.end,
    }
