"""The end of a hold: the gate of an account opens at once, and all else is freed later."""

import pytest

from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.replica import Replica, a_command
from tests.usecase.publisher_service.wide_holds import WIDE, branded


@pytest.mark.parametrize("scope", WIDE)
async def test_a_release_answers_before_anything_is_freed(replica: Replica, scope: Scope) -> None:
    names = await branded(replica, 3)
    await replica.hold(WIDE[scope], scope=scope)
    await replica.claim([a_command(name) for name in names])
    before = await replica.rows("select id, xmin::text from post_job order by id")
    await replica.release()
    assert await replica.rows("select id, xmin::text from post_job order by id") == before
    (release,) = await replica.rows("select scope, scope_id from hold_release")
    assert (release.scope, release.scope_id) == (scope, WIDE[scope])


async def test_an_account_is_not_freed_by_pages(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.hold(f"page-{name}")
    await replica.claim([a_command(name)])
    await replica.release()
    assert await replica.rows("select 1 from hold_release") == []
    assert len(await replica.next_in_line()) == 1


async def test_a_hold_of_a_newer_release_is_released_as_it_is(replica: Replica) -> None:
    await replica.hold("page")
    await replica.write("update hold set scope = 'CONTINENT', scope_id = 'europe'")
    assert not (await replica.release()).in_force
    assert await replica.rows("select 1 from hold_release") == []
