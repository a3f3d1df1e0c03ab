"""The look at holds just before a request: what was claimed before a hold does not go out after it."""

import asyncio
from datetime import timedelta

from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.send_post import SendPost
from publisher_service.domain.outcome import Accepted, NotBegun, Outcome
from servicekit.pg.clock import SteadyClock
from servicekit.pg.database import Database
from testkit.clocks import FrozenClock
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter, a_command, claims_in

MOMENT = timedelta(milliseconds=10)


class SendingAdapter(TrustingAdapter):
    """Counts what is sent."""

    def __init__(self) -> None:
        self.sent = 0

    async def send(self, post: Post) -> Outcome:
        self.sent += 1
        return Accepted(external_id=f"out-{self.sent}", external_url="")


async def test_a_post_held_after_its_claim_is_not_sent(database_url: str) -> None:
    adapter = SendingAdapter()
    replica = Replica(database_url, adapter=adapter)
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    assert (await replica.hold(f"page-{name}")).in_flight == (claimed.job.id,)
    sent = await replica.send(claimed)
    assert isinstance(sent.outcome, NotBegun)
    await replica.settle([sent])
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.attempts, job.in_doubt) == ("BLOCKED", "ACCOUNT_ON_HOLD", 0, False)
    assert adapter.sent == 0
    await replica.release()
    (again,) = await replica.next_in_line()
    assert isinstance((await replica.send(again)).outcome, Accepted)
    await replica.database.dispose()


async def test_a_post_that_was_not_sent_goes_out_though_its_release_came_first(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.hold(f"page-{name}")
    sent = await replica.send(claimed)
    await replica.release()
    assert await replica.next_in_line() == []
    await replica.settle([sent])
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 1}
    assert len(await replica.next_in_line()) == 1


async def test_an_unsent_post_whose_lease_has_ended_is_held(replica: Replica, hasty: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.hold(f"page-{name}")
    sent = await hasty.send(claimed)
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 1}
    await replica.settle([sent])
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 1}
    await replica.release()
    assert len(await replica.next_in_line()) == 1


async def test_a_post_is_not_sent_while_holds_cannot_be_read(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    adapter, steady = SendingAdapter(), SteadyClock(replica.system)
    await steady.start(replica.clock, replica.database)
    nobody = Database("postgresql://nobody:none@127.0.0.1:1/nothing", application="test")
    send = SendPost(
        providers=Providers([adapter], replica.system),
        vault=replica.vault,
        holds=HoldCheck(database=nobody, clock=replica.system),
        database=nobody,
        clock=replica.system,
        steady=steady,
    )
    await send.look_ahead(0.0)
    sent = await send(claimed, claim_started=replica.system.monotonic())
    assert isinstance(sent.outcome, NotBegun)
    await replica.settle([sent])
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.error_reason) == ("WAITING", "RETRY", "HOLDS_UNREADABLE")
    assert (job.attempts, adapter.sent) == (0, 0)


async def test_a_batch_shares_one_read(replica: Replica) -> None:
    clock, reads = FrozenClock(), _reads(replica)
    check = HoldCheck(database=replica.database, clock=clock)
    claimed = clock.monotonic()
    clock.advance(MOMENT)
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(check.look(claimed))
    clock.advance(4 * MOMENT)
    await check.look(claimed)
    assert reads == ["hold_epoch"]


async def test_an_old_read_or_one_before_the_claim_is_repeated(replica: Replica) -> None:
    clock, reads = FrozenClock(), _reads(replica)
    check = HoldCheck(database=replica.database, clock=clock)
    await check.look(clock.monotonic() - 1)
    clock.advance(MOMENT)
    # Claimed after that read had begun.
    await check.look(clock.monotonic() - MOMENT.total_seconds() / 2)
    clock.advance(21 * MOMENT)
    await check.look(clock.monotonic() - 1)
    assert reads == ["hold_epoch"] * 3


async def test_only_after_a_new_hold_are_those_of_a_post_looked_up(replica: Replica) -> None:
    names = await replica.posts(2)
    posts = {f"page-{each.job.draft_id}": each for each in claims_in(await replica.claim(list(map(a_command, names))))}
    clock, reads = FrozenClock(), _reads(replica)
    check = HoldCheck(database=replica.database, clock=clock)

    async def held(account: str) -> tuple[bool, list[str]]:
        """Asks about a post that was claimed a moment ago, two moments after the last question."""
        clock.advance(30 * MOMENT)
        claimed = clock.monotonic()
        clock.advance(MOMENT)
        reads.clear()
        assert not check.rules_out(claimed)
        return await check.reason(posts[account], claim_started=claimed) is not None, list(reads)

    assert await held("page-d0") == (False, ["hold_epoch", "hold"])
    assert await held("page-d0") == (False, ["hold_epoch"])
    await replica.hold("page-d1")
    assert await held("page-d0") == (False, ["hold_epoch", "hold"])
    # This claim began after the new hold was known, so it has obeyed it.
    assert await held("page-d1") == (False, ["hold_epoch"])
    await replica.hold("page-d1", hold="another")
    assert await held("page-d1") == (True, ["hold_epoch", "hold"])


def _reads(replica: Replica) -> list[str]:
    """Returns a list that grows by the table of each of the check's statements."""
    reads: list[str] = []

    def listen(sql: str, _values: object) -> None:
        if sql.strip().startswith(("select epoch", "select case")):
            reads.append("hold_epoch" if "epoch" in sql else "hold")

    replica.database.listeners.append(listen)
    return reads
