"""A person asks why a post has not gone out, and reads which check keeps it back."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta

import pytest

from publisher_service.application.read_jobs import ReadJobs
from publisher_service.domain.explanation import Checked, Explanation
from servicekit.faults import NotFound
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.replica import Replica, a_command, claims_in
from tests.usecase.publisher_service.situations import NOW, Situation

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def replica(database_url: str) -> AsyncIterator[Replica]:
    replica = Replica(database_url, clock=FrozenDatabaseClock(NOW))
    yield replica
    await replica.database.dispose()


async def explained(replica: Replica, state: str = "due", *facts: str) -> Explanation:
    return await replica.explain("acme", await Situation(state, frozenset(facts)).arrange(replica))


def by_name(found: Explanation) -> Mapping[str, Checked]:
    return {check.name: check for check in found.checks}


async def test_of_holds_without_an_end_the_oldest_is_named(replica: Replica) -> None:
    found = await explained(replica, "due", "held")
    assert found.sentence == (
        f"A hold covers account page-d0: an [incident] of {{braces}} (hold first, put by ann, since {NOW:%F %T} UTC)."
    )
    assert by_name(found)["ACCOUNT_HOLD"].values["hold_id"] == "first"
    assert found.clear_time is None


async def test_of_several_holds_the_last_to_end_is_named(replica: Replica) -> None:
    job_id = await Situation("due", frozenset({"held"})).arrange(replica)
    await replica.write("update hold set end_time = create_time + interval '1 minute' where id = 'first'")
    endless = await replica.explain("acme", job_id)
    assert (by_name(endless)["ACCOUNT_HOLD"].values["hold_id"], endless.clear_time) == ("second", None)
    await replica.write("update hold set end_time = create_time + interval '2 minutes' where id = 'second'")
    found = await replica.explain("acme", job_id)
    assert found.clear_time == NOW + 2 * MINUTE
    assert f"(hold second, until {NOW + 2 * MINUTE:%F %T} UTC, since {NOW:%F %T} UTC)" in found.sentence


async def test_an_inactive_destination_is_named_with_its_failures(replica: Replica) -> None:
    found = await explained(replica, "due", "inactive destination")
    assert found.sentence == (
        f"Destination team has refused 5 posts in a row: not a member (inactive since {NOW:%F %T} UTC);"
        " UpdateDestination activates it."
    )


async def test_a_provider_whose_quota_is_used_says_until_when(replica: Replica) -> None:
    found = await explained(replica, "due", "quota is used")
    assert found.clear_time == NOW + MINUTE
    assert found.sentence.endswith(f": the provider takes none before {NOW + MINUTE:%F %T} UTC.")


async def test_a_used_cap_clears_with_the_day(replica: Replica) -> None:
    found = await explained(replica, "due", "cap is used")
    end = NOW.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert found.clear_time == end
    assert found.sentence == f"3 of the daily cap of 3 are used (POST): it waits until {end:%F %T} UTC."


async def test_a_cap_of_nothing_does_not_clear_by_itself(replica: Replica) -> None:
    found = await explained(replica, "due", "cap is nothing")
    assert found.clear_time is None
    assert found.sentence == "The daily cap is 0 (POST): it waits until UpdateAccount raises it."


async def test_content_that_was_never_announced_shows_no_revision(replica: Replica) -> None:
    checks = by_name(await explained(replica, "due", "unannounced"))
    assert "revision" not in {**checks["CONTENT"].values, **checks["APPROVED"].values}
    assert "revision" not in checks["APPROVED"].sentence


async def test_content_that_was_withdrawn_before_it_came_is_explained(replica: Replica) -> None:
    checks = by_name(await explained(replica, "due", "unannounced", "withdrawn"))
    assert checks["NOT_WITHDRAWN"].sentence == "Its content is withdrawn."


async def test_an_unknown_outcome_of_a_run_without_spent_attempts_is_explained(replica: Replica) -> None:
    job_id = await Situation("unknown").arrange(replica)
    await replica.write("update post_job set attempts = 0")
    found = await replica.explain("acme", job_id)
    assert found.sentence.startswith("It may be out: the outcome is not known (TIMEOUT); the provider is asked at ")


async def test_a_wait_says_when_it_ends(replica: Replica) -> None:
    found = await explained(replica, "waits")
    assert found.clear_time == NOW + MINUTE
    assert found.sentence == (
        f"The last attempt had no effect (CONNECT); the next one follows at {NOW + MINUTE:%F %T} UTC."
    )


async def test_what_comes_before_a_post_in_line_is_counted(replica: Replica) -> None:
    found = await explained(replica, "first in line", "behind others")
    assert by_name(found)["LINE"].values == {"posts_before": 2}
    assert found.sentence == "Other posts of the account go first: 2."


async def test_the_post_that_is_out_is_named_with_its_lease(replica: Replica) -> None:
    found = await explained(replica, "due", "another is out")
    values = by_name(found)["ONE_IN_FLIGHT"].values
    assert values == {"post_job_id": "out", "lease_end": NOW + timedelta(seconds=9)}


async def test_a_post_that_is_being_sent_shows_its_lease(replica: Replica) -> None:
    found = await explained(replica, "being sent")
    assert by_name(found)["OPEN_ATTEMPT"].values["lease_end"] == NOW + timedelta(seconds=15)
    assert found.sentence.startswith("It is being sent: attempt 1, since ")


async def test_an_unknown_outcome_shows_the_next_look(replica: Replica) -> None:
    found = await explained(replica, "unknown")
    values = by_name(found)["OPEN_ATTEMPT"].values
    assert (values["next_look_time"], values["unknown_until"]) == (NOW + MINUTE, NOW + 60 * MINUTE)
    assert "the outcome of attempt 1 is not known (TIMEOUT)" in found.sentence


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("published", "It was published at "),
        ("failed", "It failed (TOO_LONG): too long; RetryPostJob begins the next run."),
        ("missed", "It was not sent before its latest time; "),
        ("canceled", "It was canceled (TAKEN_BACK) before it was sent; "),
        ("needs attention", "Nothing proves whether it is out, and it is not sent again: a person must "),
        ("no time", "It has no time: no slot has the post."),
    ],
)
async def test_a_state_is_said_in_words(replica: Replica, state: str, words: str) -> None:
    assert (await explained(replica, state)).sentence.startswith(words)


async def test_a_post_without_a_time_shows_what_would_keep_it_back(replica: Replica) -> None:
    found = await explained(replica, "no time", "unapproved", "held")
    open_checks = [check.name for check in found.checks if check.verdict]
    assert open_checks == ["TIME", "APPROVED", "ACCOUNT_HOLD"]


async def test_a_run_that_a_claim_has_opened_is_being_sent(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    assert (await replica.explain("acme", claimed.job.id)).verdict == "OPEN"


@pytest.mark.parametrize("organization", ["acme", "other"])
async def test_an_unknown_job_is_refused_as_a_read_refuses_it(replica: Replica, organization: str) -> None:
    job_id = await Situation().arrange(replica)
    name = "nothing" if organization == "acme" else job_id
    with pytest.raises(NotFound) as refused:
        await replica.explain(organization, name)
    with pytest.raises(NotFound) as read:
        await ReadJobs(replica.database).get(organization, name)
    assert (refused.value.reason, str(refused.value), refused.value.metadata) == (
        read.value.reason,
        str(read.value),
        read.value.metadata,
    )
