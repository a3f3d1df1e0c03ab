"""ListHolds: what is in force, oldest first; puts and releases between two pages neither repeat nor hide a hold."""

from publisher_service.application.read_holds import ReadHolds
from publisher_service.domain.hold import Hold, HoldFilter
from tests.usecase.publisher_service.replica import Replica


async def a_page(replica: Replica, *, behind: Hold | None = None, limit: int = 2, account: str = "") -> list[Hold]:
    wanted = HoldFilter(organization_id="acme", social_account_id=account)
    after = (behind.create_time, behind.id) if behind else None
    return list(await ReadHolds(replica.database)(wanted, after=after, limit=limit))


async def test_only_what_is_in_force_is_listed(replica: Replica) -> None:
    for name in ("released", "kept", "overtaken"):
        await replica.hold("page", hold=name)
    await replica.release("released")
    await replica.release("overtaken", revision=7)
    await replica.release("never put", revision=3)
    (hold,) = await a_page(replica, limit=10)
    assert (hold.id, hold.scope, hold.scope_id, hold.in_force) == ("kept", "ACCOUNT", "page", True)


async def test_a_hold_that_is_put_again_keeps_its_place(replica: Replica) -> None:
    for name in ("a", "b", "c"):
        await replica.hold("page", hold=name)
    await replica.release("a")
    await replica.hold("page", hold="a", reason="again")
    assert [hold.id for hold in await a_page(replica, limit=10)] == ["a", "b", "c"]


async def test_changes_between_pages_neither_repeat_nor_hide(replica: Replica) -> None:
    for number in range(5):
        await replica.hold(f"page-{number}", hold=f"h{number}")
    first = await a_page(replica)
    await replica.release("h1")
    await replica.hold("page-5", hold="h5")
    second = await a_page(replica, behind=first[-1])
    third = await a_page(replica, behind=second[-1])
    assert [[hold.id for hold in page] for page in (first, second, third)] == [["h0", "h1"], ["h2", "h3"], ["h4", "h5"]]


async def test_a_hold_of_a_newer_release_is_listed_as_it_is(replica: Replica) -> None:
    """Checks that it covers no account as far as this release knows, and is not found by one."""
    await replica.hold("page")
    await replica.write("update hold set scope = 'ORGANIZATION', scope_id = 'acme'")
    (hold,) = await a_page(replica)
    assert (hold.scope, hold.scope_id) == ("ORGANIZATION", "acme")
    assert await a_page(replica, account="acme") == []
