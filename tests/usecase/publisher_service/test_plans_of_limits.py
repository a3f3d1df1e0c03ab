"""Plain posts look up no limit: claims and settlements of them read none of the tables of limits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from publisher_service.adapters.postgres.claim import claim
from publisher_service.domain.claim import Verdict
from testkit.plans import Explaining, nodes_of
from tests.usecase.publisher_service.outreach import NOON, Outreach

OF_LIMITS = {"account_action", "reservation", "parked_line", "account_schedule"}


@pytest.fixture
async def explaining(outreach: Outreach) -> AsyncIterator[Explaining]:
    async with outreach.replica.database.engine.connect() as connection:
        yield Explaining(connection, growing=OF_LIMITS)


def looked_up(explaining: Explaining) -> set[str]:
    """Returns the tables of limits that were read at all."""
    return {
        node["Relation Name"]
        for _, plan in explaining.read
        for node in nodes_of(plan)
        if node.get("Relation Name") in OF_LIMITS and node["Actual Loops"]
    }


async def verdicts(outreach: Outreach, explaining: Explaining, channel: str) -> set[Verdict]:
    commands = await outreach.save(20, channel=channel)
    session: Any = explaining
    judged = await claim(session, commands, outreach.replica.lanes, now=NOON, sender="sender")
    return {each.verdict for each in judged.values()}


async def test_the_claim_of_plain_posts_looks_no_limit_up(outreach: Outreach, explaining: Explaining) -> None:
    assert await verdicts(outreach, explaining, "facebook") == {Verdict.CLAIMED, Verdict.ACCOUNT_BUSY}
    assert looked_up(explaining) == set()


async def test_the_claim_of_an_email_looks_its_cap_up(outreach: Outreach, explaining: Explaining) -> None:
    """The test above would see it."""
    assert await verdicts(outreach, explaining, "email") == {Verdict.LIMITS_STALE}
    assert "account_action" in looked_up(explaining)
