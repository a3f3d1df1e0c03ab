"""Recipients follow what Drafts announces of brands: the highest version wins."""

from publisher_service.domain.recipients import Mode, Preferences, Recipient, RecipientList, Role
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import EACH, Notified


def brand(version: int, *people: str, name: str = "The shop", zone: str = "Europe/Berlin") -> RecipientList:
    return RecipientList(
        organization_id="acme",
        brand_id="shop",
        name=name,
        time_zone=zone,
        recipients=tuple(Recipient(email=f"{each}@example.com", name=each, role=Role.ADMIN) for each in people),
        announced_version=version,
    )


async def announce(notified: Notified, *brands: RecipientList) -> None:
    await notified.database.run(lambda tx: notified.follow_brands(tx, brands, notified.clock.moment))


async def test_the_newest_of_all_announcements_counts(notified: Notified) -> None:
    await announce(notified, brand(3, "carl"), brand(2, "bob"))
    await announce(notified, brand(1, "ann"))
    await announce(notified, brand(3, "dora"))
    found = await notified.read.recipients("acme", "shop")
    assert [each.email for each in found.recipients] == ["carl@example.com"]
    assert (found.name, found.time_zone, found.announced_version) == ("The shop", "Europe/Berlin", 3)


async def test_preferences_outlive_an_announcement(notified: Notified) -> None:
    await notified.recipients("ann", brand="shop", preferences=EACH)
    await announce(notified, brand(1, "bob"))
    found = await notified.read.recipients("acme", "shop")
    assert [each.name for each in found.recipients] == ["bob"]
    assert found.preferences == EACH


async def test_of_an_announced_brand_only_preferences_are_set_here(notified: Notified) -> None:
    await announce(notified, brand(1, "bob"))
    refused = await fault_of(notified.recipients("eve", brand="shop"))
    assert refused.reason == "BRAND_OF_DRAFTS"
    wanted = Preferences(published=Mode.NONE)
    await notified.recipients("bob", brand="shop", name="The shop", zone="Europe/Berlin", preferences=wanted)
    found = await notified.read.recipients("acme", "shop")
    assert (found.preferences, found.announced_version) == (wanted, 1)
