"""Posts that holds of every scope cover, and steps after a release, for the tests of wide holds."""

from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.replica import DUE, Replica, a_draft, a_sent

WIDE = {Scope.ORGANIZATION: "", Scope.PROVIDER: "sandbox", Scope.BRAND: "bakery", Scope.CAMPAIGN: "spring"}


async def branded(replica: Replica, count: int, *, account: str = "") -> list[str]:
    """Makes posts of the brand and the campaign."""
    names = await replica.posts(count, account=account)
    drafts = [a_draft(n, account or f"page-{n}", version=2, brand="bakery", campaign="spring") for n in names]
    await replica.save(*drafts)
    return names


async def freed(replica: Replica) -> None:
    """Frees posts until nothing is left to free; time does not matter here."""
    while await replica.rows("select 1 from hold_release"):
        await replica.write("update hold_release set next_time = :then", then=DUE)
        await replica.free()
    await replica.write("update account_gate set wake_time = :then where wake_time is not null", then=DUE)
    while await replica.relabel():
        pass


async def all_out(replica: Replica) -> None:
    """Sends what has its turn, until nothing has."""
    while claimed := await replica.next_in_line():
        await replica.settle([a_sent(each) for each in claimed])
