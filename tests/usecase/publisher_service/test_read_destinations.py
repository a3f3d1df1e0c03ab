"""Destinations as they are listed: by account, channel and destination, of one organization."""

from publisher_service.application.read_destinations import ReadDestinations
from publisher_service.domain.destination import DestinationFilter, DestinationState
from tests.usecase.publisher_service.addressees import REFUSED, a_chat, all_at_once, posts_to, switch
from tests.usecase.publisher_service.replica import Replica, a_sent


async def names(
    replica: Replica, *, after: tuple[str, str, str] | None = None, limit: int = 9, **of: object
) -> list[str]:
    wanted = DestinationFilter(organization_id="acme", **of)  # type: ignore[arg-type]
    found = await ReadDestinations(replica.database)(wanted, after=after, limit=limit)
    return [each.target.destination for each in found]


async def test_each_page_begins_behind_the_one_before(replica: Replica) -> None:
    await replica.connect("bot")
    for name in ("c", "a", "b"):
        await switch(replica, a_chat(name), DestinationState.INACTIVE)
    assert await names(replica, limit=2) == ["a", "b"]
    assert await names(replica, limit=2, after=("bot", "facebook", "b")) == ["c"]


async def test_a_destination_shows_what_settlements_have_counted(replica: Replica) -> None:
    claimed = await all_at_once(replica, await posts_to(replica, a_chat(), 2))
    await replica.settle([a_sent(claimed[0], REFUSED)])
    await replica.settle([a_sent(claimed[1])])
    wanted = DestinationFilter(organization_id="acme", states=(DestinationState.ACTIVE,))
    (found,) = await ReadDestinations(replica.database)(wanted, after=None, limit=9)
    assert (found.target, found.state, found.failures) == (a_chat(), DestinationState.ACTIVE, 0)
    assert found.last_success_time is not None
    assert found.last_failure_time is not None


async def test_other_organizations_are_not_listed(replica: Replica) -> None:
    await replica.connect("bot")
    await switch(replica, a_chat(), DestinationState.INACTIVE)
    wanted = DestinationFilter(organization_id="other")
    assert await ReadDestinations(replica.database)(wanted, after=None, limit=9) == []
