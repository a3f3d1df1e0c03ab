"""PostgreSQL goes down in the middle of the work. Nothing is lost, and nothing goes out twice."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import cycle
from typing import Any

from devstack.servers.postgres import EmbeddedPostgres
from servicekit.run.transient import is_transient
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

POSTS = 200
SENDERS = 8
QUICK = {"fault": "slow", "seconds": 0.1}
SLOW = {"fault": "slow", "seconds": 0.5}  # longer than it takes to kill a database
ACCOUNTS = [f"page-{number}" for number in range(40)]


async def test_200_posts_survive_a_crash_and_a_restart_of_the_database(
    start_on_own_postgres: Start, own_postgres: EmbeddedPostgres
) -> None:
    async with start_on_own_postgres(senders=SENDERS) as rig:
        for account in ACCOUNTS:
            await rig.connect(account)
        await rig.sandbox.faults(QUICK)
        posts = {f"d{number}": account for number, account in zip(range(POSTS), cycle(ACCOUNTS), strict=False)}
        # All are due after the last one is scheduled: otherwise most are out before the database goes down.
        due = rig.clock.now() + timedelta(seconds=5)
        for draft, account in posts.items():
            await rig.save_draft(draft, account)
            slot = await rig.schedule(draft, due, account=account)
            await rig.command(draft, slot, due, account=account)

        await eventually(lambda: len(rig.sandbox.effects()) >= POSTS // 5, within=30)
        await rig.sandbox.faults(SLOW)
        begun = await _begun(rig) + SENDERS
        await eventually(lambda: _has_begun(rig, begun))
        before = len(rig.sandbox.effects())
        await own_postgres.kill()
        await eventually(lambda: len(rig.sandbox.effects()) > before)  # its answer cannot be recorded now
        await rig.sandbox.faults(QUICK)
        await own_postgres.start()
        await eventually(lambda: len(rig.sandbox.effects()) >= POSTS // 2, within=60)
        await own_postgres.restart()

        async def all_out() -> bool:
            states = Counter(row.state for row in await rig.rows("select state from post_job"))
            assert states == {"PUBLISHED": POSTS}, states
            return True

        await eventually(lambda: _when_it_answers(all_out), within=60)
        effects = rig.sandbox.effects()
        jobs = await rig.rows("select id, draft_id, external_id, run from post_job")
        assert len(effects) == POSTS
        assert {effect["idempotency_key"]: effect["id"] for effect in effects} == {
            f"{job.id}-{job.run}": job.external_id for job in jobs
        }
        accepted = await rig.rows("select external_id from attempt where state = 'ACCEPTED'")
        assert sorted(row.external_id for row in accepted) == sorted(effect["id"] for effect in effects)
        assert await rig.rows("select 1 from attempt where state in ('SENDING', 'UNKNOWN')") == []
        assert await rig.rows("select 1 from account_gate where open_job_id is not null") == []
        succeeded = Counter([(await rig.kinds(draft)).count("SUCCEEDED") for draft in sorted(posts)[:20]])
        assert succeeded == {1: 20}


async def _begun(rig: Rig) -> int:
    ((count,),) = await rig.rows("select count(*) from attempt")
    return int(count)


async def _has_begun(rig: Rig, attempts: int) -> bool:
    return await _begun(rig) >= attempts


async def _when_it_answers(condition: Callable[[], Any]) -> bool:
    try:
        return bool(await condition())
    except Exception as error:
        if not is_transient(error):
            raise
        raise AssertionError("the database is down") from error
