"""FindDraftTargets reads what drafts of any tenants have now."""

from drafts_service.application.find_draft_targets import FindDraftTargets
from drafts_service.domain.draft import DraftTargets
from drafts_service.domain.target import Target
from servicekit.pg.database import Database
from tests.usecase.drafts_service.conftest import ADraft

NAMES = [("org", "one"), ("org", "two"), ("org", "missing"), ("other", "one")]


async def test_the_drafts_that_exist_are_found_with_their_targets(database: Database, a_draft: ADraft) -> None:
    await a_draft("one")
    await a_draft("two")
    found = {each.key: each for each in await FindDraftTargets(database)(NAMES)}
    assert found.keys() == {("org", "one"), ("org", "two")}
    one = found["org", "one"]
    assert one == DraftTargets(key=("org", "one"), revision=1, targets=one.targets)
    assert all(isinstance(each, Target) for each in one.targets)
    assert one.targets


async def test_no_name_finds_nothing(database: Database) -> None:
    assert await FindDraftTargets(database)([]) == []
