"""A long line whose first post is over a limit is parked in pages, not post by post."""

from dataclasses import replace

from publisher_service.domain.post_job import Target
from tests.usecase.publisher_service.outreach import SPACING, Outreach
from tests.usecase.publisher_service.replica import a_draft, claims_in


async def test_what_the_same_limit_keeps_back_is_parked_together(outreach: Outreach) -> None:
    (claimed, *_) = await outreach.claim(await outreach.save(150))
    assert await outreach.replica.states() == {"SENDING": 1, "READY IN_LINE": 149}
    await outreach.settle(claimed)
    turns = await outreach.replica.turns()
    assert (turns.claimed, turns.more) == ([], True)
    assert await outreach.replica.states() == {"PUBLISHED": 1, "WAITING SPACING": 149}
    (line,) = await outreach.replica.rows("select * from parked_line")
    assert line.parked_on == "spacing:OUTREACH"


async def test_others_of_the_line_pass(outreach: Outreach) -> None:
    emails, posts = await outreach.save(5), await outreach.save(5, prefix="p", channel="facebook")
    (claimed, *_) = await outreach.claim([emails[0], *emails[1:], *posts])
    await outreach.settle(claimed)
    (post,) = await outreach.turns()
    assert post.job.target.channel in ("facebook", "email")
    states = await outreach.replica.states()
    assert states["SENDING"] == 1
    assert states["WAITING SPACING"] + states["READY IN_LINE"] == 8


async def test_a_post_that_may_pass_over_the_cap_is_not_parked_behind_others(outreach: Outreach) -> None:
    (first,) = await outreach.claim(await outreach.save(1))
    for name, over_cap in (("within", False), ("over", True)):
        target = Target(social_account_id="page", channel="email", destination=f"{name}@example.com")
        await outreach.replica.publish(replace(a_draft(name, "page"), targets=(target,)), over_cap=over_cap)
    assert claims_in(await outreach.replica.claim((await outreach.replica.recover()).due)) == []
    await outreach.replica.write("update account_action set cap = 1")
    await outreach.settle(first)
    (claimed,) = await outreach.turns()
    assert claimed.job.draft_id == "over"
    assert (await outreach.job("within")).state_reason == "DAILY_CAP"


async def test_what_comes_back_into_the_line_of_a_held_account_shows_the_hold(outreach: Outreach) -> None:
    first, _ = await outreach.save(2)
    (claimed,) = await outreach.claim([first])
    await outreach.settle(claimed)
    await outreach.claim(await outreach.save(1, prefix="e"))
    assert (await outreach.replica.states())["WAITING SPACING"] == 1
    await outreach.replica.hold("page")
    await outreach.replica.write("update account_gate set relabel = false")
    assert await outreach.pass_time(SPACING) == []
    while await outreach.replica.relabel():
        pass
    assert (await outreach.job("e000")).state_reason == "ACCOUNT_ON_HOLD"
