"""Any history of a post and its comments: answers are lost, refused or late, and two processes work at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from publisher_service.adapters.providers.adapter import Post
from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.outcome import Absent, Accepted, Ambiguous, Finding, Found, NoProof, Outcome, Rejected
from publisher_service.domain.resolution import Resolution, Said
from testkit.calls import call
from tests.usecase.publisher_service.follow_ups import commented, id_of, jobs
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter, a_command, claims_in

_CLEAR = """
    truncate post_job, content, kept_content, social_account, account_gate, attempt, open_claim, outbox, resolution,
        activity, follow_up_due, request_ledger
"""
PARTS = 3
ANSWERS = ("accepted", "lost", "lost, not out", "refused", "late")
OTHERS = ("look", "blind look", "retry", "resolve", "save again")


@dataclass
class Network:
    """A provider: what is out by key, each with what it follows, in the order in which it went out."""

    effects: dict[str, str] = field(default_factory=dict)
    is_blind: bool = False

    def put(self, claimed: Claimed) -> Accepted:
        self.effects.setdefault(claimed.idempotency_key, claimed.job.follows)
        return Accepted(external_id=f"out-{claimed.idempotency_key}", external_url="")

    async def look(self, post: Post) -> Finding:
        if self.is_blind:
            return NoProof(message="nothing is shown")
        if post.idempotency_key not in self.effects:
            return Absent()
        return Found(external_id=f"out-{post.idempotency_key}", external_url="", publish_time=None)


class History:
    """Two processes and one draft with comments."""

    def __init__(self, replicas: Sequence[Replica], network: Network) -> None:
        self.replicas, self.network = replicas, network
        self.late: list[Sent] = []
        self.commands: list[Command] = []
        self.version = 1

    async def begin(self) -> None:
        first, *_ = self.replicas
        await first.write(_CLEAR)
        await first.posts(1)
        await first.save(commented("d0", "one", "two"))

    async def act(self, number: int, what: str) -> None:
        replica = self.replicas[number % len(self.replicas)]
        await self._begin_together()
        if what in ANSWERS:
            await self._send(replica, what)
        elif what in ("look", "blind look"):
            self.network.is_blind = what == "blind look"
            swept = await replica.recover()
            self.commands += swept.due
            for question in swept.questions:
                await replica.look_up(question.job)
            self.network.is_blind = False
        elif what == "retry":
            await self._on_each(replica, "FAILED", replica.retry)
        elif what == "resolve":
            for state in ("UNKNOWN", "NEEDS_ATTENTION"):
                await self._on_each(replica, state, partial(self._resolve, replica))
        else:
            self.version += 1
            await replica.save(commented("d0", "one", "two", revision=1 + self.version))
        await self.check()

    async def end(self) -> None:
        """Lets everything that can end do so; nothing else goes wrong."""
        first, *_ = self.replicas
        for _ in range(40):
            await first.write(
                "update post_job set next_action_time = now() - interval '1 minute'"
                " where state in ('WAITING', 'UNKNOWN') and next_action_time is not null"
            )
            for what in ("look", "resolve", "retry", "accepted"):
                await self.act(0, what)
            if {row.state for row in await jobs(first)} == {"PUBLISHED"}:
                return
        raise AssertionError([(row.part, row.state, row.state_reason, row.error_reason) for row in await jobs(first)])

    async def check(self) -> None:
        rows = {row.id: row for row in await jobs(self.replicas[0])}
        parts = sorted(rows.values(), key=lambda row: row.part)
        assert [row.part for row in parts] == list(range(PARTS))
        seen = [rows[key.rpartition("-")[0]].part for key in self.network.effects]
        assert seen == list(range(len(seen))), f"parts went out as {seen}"
        for before, part in pairwise(parts):
            if part.state != "PENDING":
                assert before.state == "PUBLISHED", f"part {part.part} is {part.state}, {before.part} {before.state}"
                assert part.follows == parts[0].external_id
        for key, follows in self.network.effects.items():
            assert follows == ("" if rows[key.rpartition("-")[0]].part == 0 else parts[0].external_id)

    async def _send(self, replica: Replica, answer: str) -> None:
        commands = [*self.commands, *(await replica.recover()).due, a_command("d0")]
        self.commands.clear()
        for claimed in claims_in(await replica.claim(commands)):
            outcome: Outcome = Ambiguous(reason="CONNECTION_LOST", message="reset")
            match answer:
                case "accepted":
                    outcome = self.network.put(claimed)
                case "lost":
                    self.network.put(claimed)
                case "late":
                    accepted = self.network.put(claimed)
                    self.late.append(Sent(claimed=claimed, outcome=accepted, time=claimed.job.update_time))
                case "refused":
                    outcome = Rejected(reason="TEXT_TOO_LONG", message="too long")
            await replica.settle([Sent(claimed=claimed, outcome=outcome, time=claimed.job.update_time)])
        if answer == "accepted" and self.late:
            await replica.settle([self.late.pop()])

    async def _on_each(self, replica: Replica, state: str, act: Callable[[str], Awaitable[object]]) -> None:
        for row in await jobs(replica):
            if row.state == state:
                await act(row.id)

    async def _resolve(self, replica: Replica, job_id: str) -> None:
        """Says the truth."""
        (row,) = [row for row in await jobs(replica) if row.id == job_id]
        key = f"{job_id}-{row.run}"
        is_out = key in self.network.effects
        said = Resolution(
            outcome=Said.PUBLISHED if is_out else Said.NOT_PUBLISHED,
            external_id=f"out-{key}" if is_out else "",
            external_url="",
            publish_time=None,
            resolver="ann",
            note="",
        )
        await replica.resolve(call("ResolvePostJob"), job_id, said)

    async def _begin_together(self) -> None:
        async with asyncio.TaskGroup() as group:
            for replica in self.replicas:
                group.create_task(replica.begin_follow_ups())


@pytest.fixture
async def histories(replica: Replica, database_url: str) -> History:
    network = Network()

    class Adapter(TrustingAdapter):
        async def look(self, post: Post) -> Finding:
            return await network.look(post)

    return History([Replica(database_url, adapter=Adapter()) for _ in range(2)], network)


@settings(max_examples=40, deadline=timedelta(seconds=60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ANSWERS + OTHERS)), max_size=14))
async def test_parts_go_out_once_and_in_order_in_any_history(histories: History, steps: list[tuple[int, str]]) -> None:
    histories.network.effects.clear()
    histories.late.clear()
    histories.commands.clear()
    histories.version = 1
    await histories.begin()
    for number, what in steps:
        await histories.act(number, what)
    await histories.end()
    assert len(histories.network.effects) == PARTS
    for row in await jobs(histories.replicas[0]):
        assert row.external_id == f"out-{id_of(row.part)}-{row.run}"
