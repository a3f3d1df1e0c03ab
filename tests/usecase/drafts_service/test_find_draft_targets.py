"""FindDraftTargets reads what drafts of any tenants have now."""

from drafts_service.application.find_draft_targets import FindDraftTargets
from drafts_service.domain.draft import Change, DraftTargets
from drafts_service.domain.target import Target
from servicekit.pg.database import Database
from tests.usecase.drafts_service.conftest import ADraft, Update

NAMES = [("org", "one"), ("org", "two"), ("org", "missing"), ("other", "one")]


async def test_the_drafts_that_exist_are_found_with_their_targets(
    database: Database, a_draft: ADraft, update_draft: Update
) -> None:
    await a_draft("one")
    await a_draft("two")
    await update_draft(draft_id="two", change=Change(category_id="news"))
    found = {each.key: each for each in await FindDraftTargets(database)(NAMES)}
    assert found.keys() == {("org", "one"), ("org", "two")}
    one = found["org", "one"]
    assert one == DraftTargets(key=("org", "one"), revision=1, targets=one.targets, category_id="")
    assert found["org", "two"].category_id == "news"
    assert all(isinstance(each, Target) for each in one.targets)
    assert one.targets


async def test_no_name_finds_nothing(database: Database) -> None:
    assert await FindDraftTargets(database)([]) == []
