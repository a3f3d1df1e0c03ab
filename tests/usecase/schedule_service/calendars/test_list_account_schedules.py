"""Listing account schedules."""

from typing import TYPE_CHECKING

from schedule_service.application.calendars.list_account_schedules import ListAccountSchedules

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


async def test_live_schedules_of_one_organization_are_listed_in_order(schedules: "Schedules") -> None:
    for account in ("c", "a", "page", "b"):
        await schedules.put(social_account_id=account)
    await schedules.put(organization_id="umbrella", social_account_id="aa")
    await schedules.delete()  # "page"
    list_schedules = ListAccountSchedules(schedules.database)

    async def listed(after: str, size: int) -> list[str]:
        found = await list_schedules(organization_id="acme", after=after, size=size)
        return [schedule.social_account_id for schedule in found]

    assert await listed("", 10) == ["a", "b", "c"]
    assert await listed("", 2) == ["a", "b"]
    assert await listed("b", 2) == ["c"]
