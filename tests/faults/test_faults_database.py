"""PostgreSQL restarts or crashes while posts are due: no process ends, and every post goes out once."""

from datetime import timedelta

import pytest

from devstack.servers.postgres import EmbeddedPostgres
from devstack.stack import Stack
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import Posting

POSTS = [f"post-{number}" for number in range(100)]


@pytest.fixture
def database(stack: Stack) -> EmbeddedPostgres:
    assert stack.postgres is not None
    return stack.postgres


async def _due_now(posting: Posting, count: int) -> None:
    """Schedules a hundred posts for one instant and waits until `count` are out."""
    await posting.schedule(*POSTS, ahead=2)
    await eventually(lambda: len(posting.effects()) >= count, within=20)


@pytest.mark.parametrize("already_out", [1, 30])
async def test_a_crash_with_a_hundred_posts_due_doubles_and_loses_none(
    stack: Stack, posting: Posting, database: EmbeddedPostgres, already_out: int
) -> None:
    await _due_now(posting, already_out)
    await database.kill()
    await database.start()
    await posting.check_all_published(within=60)
    assert all(stack.running(service) for service in stack.targets)


async def test_a_restart_with_a_hundred_posts_due_doubles_and_loses_none(
    stack: Stack, posting: Posting, database: EmbeddedPostgres
) -> None:
    await _due_now(posting, 1)
    await database.restart()
    await posting.check_all_published(within=60)
    assert all(stack.running(service) for service in stack.targets)


async def test_an_outage_of_the_database_when_posts_are_due_delays_them(
    stack: Stack, posting: Posting, database: EmbeddedPostgres
) -> None:
    due = await posting.schedule(*POSTS[:10], ahead=4)
    await posting.until_slots("DISPATCHED")
    await database.kill()
    await eventually(lambda: SystemClock().now() > due + timedelta(seconds=1))
    assert posting.effects() == []
    await database.start()
    await posting.check_all_published(within=60)
    assert all(stack.running(service) for service in stack.targets)
