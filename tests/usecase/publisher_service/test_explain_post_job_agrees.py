"""An explanation names the check that a claim decides by, in any situation."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings

from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.explanations import TRACE
from publisher_service.adapters.postgres.jobs import get_job
from publisher_service.adapters.postgres.limits import refresh_limits
from publisher_service.adapters.postgres.lines import first_in_lines
from publisher_service.domain.claim import Verdict, command_of
from publisher_service.domain.explanation import Beside, CheckState, Explanation
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.replica import Replica
from tests.usecase.publisher_service.situations import FACTS, NOW, STATES, Situation, situations

# A job's own command is never older than the job, and an explanation looks again, as the claim does.
NEVER = {Verdict.STALE, Verdict.COMMAND_AHEAD, Verdict.LIMITS_STALE}
# The first open check of a situation is one of these.
OCCURRING = {*(each.verdict for each in TRACE), *Beside, Verdict.CLAIMED} - NEVER


class Undone(Exception):
    pass


@pytest.fixture
async def replica(database_url: str) -> AsyncIterator[Replica]:
    replica = Replica(database_url, clock=FrozenDatabaseClock(NOW))
    await replica.write("alter table post_job drop constraint post_job_state_check")
    yield replica
    await replica.database.dispose()


@pytest.fixture
def seen() -> Iterator[Counter[str]]:
    """Counts the verdicts of all examples of a test, and fails if one has never come."""
    seen: Counter[str] = Counter()
    yield seen
    assert OCCURRING - seen.keys() == set()


async def verdict_of_claim(replica: Replica, job_id: str) -> Verdict | None:
    """Claims the job by its own command, and undoes it; None for a job without a time."""
    verdict: Verdict | None = None
    try:
        async with replica.database.transaction() as tx:
            job = await get_job(tx.connection, "acme", job_id)
            assert job is not None
            if job.schedule_time is None:
                return None
            heads = await first_in_lines(tx.connection, [job.account_key])
            is_first = [head.id for head in heads] == [job_id]
            judge = partial(
                claim,
                tx,
                [command_of(job)],
                replica.lanes,
                now=NOW,
                sender="test/1",
                from_line=is_first,
                process="test",
                marks=replica.marks.known,
            )
            verdict = (await judge())[0].verdict
            if verdict is Verdict.LIMITS_STALE:
                await refresh_limits(tx.connection, [command_of(job)], now=NOW)
                verdict = (await judge())[0].verdict
            raise Undone
    except Undone:
        return verdict


def first_open(explained: Explanation, *, beside: bool) -> str:
    for check in explained.checks:
        if check.state is CheckState.OPEN and (beside or check.verdict not in set(Beside)):
            return check.verdict
    return Verdict.CLAIMED


def with_each_alone(test: Callable[..., Any]) -> Callable[..., Any]:
    """Adds each state and each fact as an example of its own, so that every verdict comes."""
    alone = [*(Situation(state) for state in STATES), *(Situation(facts=frozenset({fact})) for fact in FACTS)]
    together = [Situation("in doubt", frozenset({"newer content"})), Situation("first in line", frozenset({"a line"}))]
    for situation in [*alone, *together]:
        test = example(situation=situation)(test)
    return test


@with_each_alone
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(situation=situations)
async def test_the_first_open_check_is_the_verdict_of_the_claim(
    replica: Replica, seen: Counter[str], situation: Situation
) -> None:
    job_id = await situation.arrange(replica)
    explained = await replica.explain("acme", job_id)
    claimed = await verdict_of_claim(replica, job_id)
    seen[explained.verdict] += 1
    event(explained.verdict)
    assert explained.verdict == first_open(explained, beside=True)
    if claimed is not None:
        assert first_open(explained, beside=False) == claimed


@pytest.mark.parametrize("state", STATES)
async def test_a_state_alone_is_explained(replica: Replica, state: str) -> None:
    situation = Situation(state, frozenset({"bytes are kept"} if state == "in doubt" else ()))
    explained = await replica.explain("acme", await situation.arrange(replica))
    assert explained.verdict == STATES[state][0]


async def test_what_may_be_out_goes_again_though_newer_content_is_not_approved(replica: Replica) -> None:
    situation = Situation("in doubt", frozenset({"newer content", "unapproved", "bytes are kept"}))
    job_id = await situation.arrange(replica)
    assert (await replica.explain("acme", job_id)).verdict == Verdict.CLAIMED
    assert await verdict_of_claim(replica, job_id) == Verdict.CLAIMED


@pytest.mark.parametrize("fact", FACTS)
async def test_a_fact_alone_is_explained(replica: Replica, fact: str) -> None:
    explained = await replica.explain("acme", await Situation(facts=frozenset({fact})).arrange(replica))
    assert explained.verdict == FACTS[fact][0]
    opened = [check.verdict for check in explained.checks if check.state is CheckState.OPEN]
    assert opened == [FACTS[fact][0]] or (opened, explained.verdict) == ([], Verdict.CLAIMED)


async def test_an_explanation_leaves_no_trace(replica: Replica) -> None:
    """Its session refuses to write and to lock rows, so it reads past rows that others have locked."""
    job_id = await Situation("first in line", frozenset(FACTS)).arrange(replica)
    rows = "select * from post_job natural full join (select g.* from account_gate g) g order by id"
    before = await replica.rows(rows)
    async with replica.database.transaction() as tx:
        await first_in_lines(tx.connection, [("acme", "page-d0")])
        await replica.explain("acme", job_id)
    assert await replica.rows(rows) == before
