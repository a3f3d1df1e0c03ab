"""The processes of Publisher: what they do by themselves, and what the provider answers them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.outcome import NotBegun, Outcome
from publisher_service.domain.post_job import Reason
from tests.usecase.publisher_service.machine.processes import Process
from tests.usecase.publisher_service.machine.provider import CLOSED, PAUSE
from tests.usecase.publisher_service.machine.scene import LEASE, REQUEST
from tests.usecase.publisher_service.machine.world import World

_RESERVED = """
    select count(*) from reservation
    where social_account_id = :account and (post_job_id, run) <> (:id, :run)
        and cast(reserve_time at time zone :zone as date) = :day
"""

_POST = """
    select post.state, post.external_id from post_job part
    join post_job post using (organization_id, draft_id, social_account_id, channel, destination)
    where part.id = :id and post.part = 0
"""


class Engine:
    def __init__(self, world: World) -> None:
        self.world = world

    async def deliver(self, process: int, number: int, answer: str) -> None:
        """Delivers a command that is due; also an old one."""
        due = [command for command in self.world.commands if command.schedule_time <= self.world.now]
        if due:
            command = due[-1 - number % len(due)]
            await self._claim(process, [replace(command, emission=1 + number % 2)], answer)

    async def take_in(self, process: int, answer: str) -> None:
        """Delivers all commands that are due, together."""
        await self._claim(
            process, [each for each in self.world.commands if each.schedule_time <= self.world.now], answer
        )

    async def sweep(self, process: int, answer: str) -> None:
        replica = self.world.processes[process]
        await replica.begin_follow_ups()
        found = await replica.recover()
        for question in found.questions:
            await replica.look_up(question.job)
        if found.due:
            await self._claim(process, found.due, answer)

    async def take_turns(self, process: int, answer: str) -> None:
        replica = self.world.processes[process]
        while await replica.relabel():
            pass
        while await replica.free():
            pass
        while await replica.release_destinations():
            pass
        await replica.wake_parked.look()
        began = replica.claim_begins()
        turns = await replica.turns()
        for _, claimed in turns.claimed:
            await self._go_on(replica, claimed, answer, began)

    async def answer_late(self, process: int) -> None:
        """The answers that are late come, and a process hears that its COMMITs have failed."""
        late, self.world.late = self.world.late, []
        for sent in late:
            await self.world.processes[process].settle([sent])
        failed, self.world.failed = self.world.failed, []
        for each in failed:
            await self.world.processes[process].disown(each)

    async def begin_request(self, answer: str) -> None:
        """Has a claimed post begin, if its lease and a last look at holds allow it."""
        if not self.world.claimed:
            return
        claimed, replica, claim_began = self.world.claimed.pop(0)
        job, token = claimed.job, replica.token_of(claimed)
        stopped = self.world.promised.stops(claimed, token)
        reason = await replica.stops(claimed, claim_began=claim_began)
        stopped &= self.world.promised.stops(claimed, token)
        if reason is None and stopped:
            self.world.broken.append(f"{job.id} begins, though stopped by {stopped}")
        assert job.last_attempt_time is not None
        unsent: str | None = reason or (None if token else Reason.ACCOUNT_NOT_CONNECTED)
        if unsent is None and self.world.now + REQUEST > job.last_attempt_time + LEASE:
            unsent = "LEASE_TOO_SHORT"
        if unsent is None:
            await self._request(replica, claimed, answer)
        elif answer.startswith("late "):
            outcome = NotBegun(reason=unsent, message="m")
            self.world.late.append(Sent(claimed=claimed, outcome=outcome, time=self.world.now))
        else:
            await self._settle(replica, claimed, NotBegun(reason=unsent, message="m"))

    async def _claim(self, process: int, commands: Sequence[Command], answer: str) -> None:
        replica = self.world.processes[process]
        began = replica.claim_begins()
        for each in await replica.claim(commands):
            if isinstance(each, Claimed):
                await self._go_on(replica, each, answer, began)

    async def _go_on(self, replica: Process, claimed: Claimed, answer: str, claim_began: float) -> None:
        world = self.world
        world.lost.add(claimed.idempotency_key)
        world.broken += world.promised.broken_by_claim(claimed, world.now)
        if answer == "claim failed":
            (attempt,) = await world.rows(
                "select sender from attempt where post_job_id = :id and fence = :fence",
                id=claimed.job.id,
                fence=claimed.job.fence,
            )
            world.failed.append(FailedClaim(sender=attempt.sender, jobs=[claimed.job.key]))
            return
        await self._check_cap(claimed)
        await self._check_order(claimed)
        if answer == "slow":
            world.claimed.append((claimed, replica, claim_began))
            return
        if answer.removeprefix("late ") != "not begun":
            world.broken += world.promised.broken_by_request(claimed, replica.token_of(claimed))
        await self._request(replica, claimed, answer)
        if not (answer.startswith("late ") or answer.endswith("silent") or claimed.job.in_doubt):
            world.lost.discard(claimed.idempotency_key)

    async def _check_cap(self, claimed: Claimed) -> None:
        """The other reservations of the day leave room for this attempt."""
        job, promised = claimed.job, self.world.promised
        account = job.target.social_account_id
        cap, day = promised.cap_of(account), promised.day_of(account, self.world.now)
        if cap is None or day is None or job.over_cap:
            return
        zone = str(promised.zone_of(account))
        ((count,),) = await self.world.rows(_RESERVED, account=account, id=job.id, run=job.run, zone=zone, day=day)
        if count >= cap:
            self.world.broken.append(f"{job.id} is claimed as {count + 1} of {cap} on {day} in {zone}")

    async def _check_order(self, claimed: Claimed) -> None:
        """A comment goes out below its post, which is out."""
        job = claimed.job
        if job.part:
            (post,) = await self.world.rows(_POST, id=job.id)
            if (post.state, post.external_id) != ("PUBLISHED", job.follows):
                self.world.broken.append(f"{job.id} follows {job.follows!r}, and its post is {post}")

    async def _request(self, replica: Process, claimed: Claimed, answer: str) -> None:
        late = answer.startswith("late ")
        answer = answer.removeprefix("late ")
        outcome = self.world.provider.request(claimed, answer)
        job, key = claimed.job, claimed.idempotency_key
        if answer == "auth refused":
            self.world.ended_tokens.add((job.target.social_account_id, replica.token_of(claimed)))
        if self.world.provider.effects.get(key) and not job.part:
            sent = self.world.promised.sent[job.target.social_account_id]
            sent.setdefault(key, self.world.now)
        if late:
            self.world.late.append(Sent(claimed=claimed, outcome=outcome, time=self.world.now))
        elif not answer.endswith("silent"):
            await self._settle(replica, claimed, outcome)
            await self._note_pause(claimed, answer)

    async def _settle(self, replica: Process, claimed: Claimed, outcome: Outcome) -> None:
        await replica.settle([Sent(claimed=claimed, outcome=outcome, time=self.world.now)])

    async def _note_pause(self, claimed: Claimed, answer: str) -> None:
        """The provider wants no posts for a while, if its answer was recorded in time."""
        promised, job = self.world.promised, claimed.job
        (attempt,) = await self.world.rows(
            "select state from attempt where post_job_id = :id and fence = :fence", id=job.id, fence=job.fence
        )
        if answer not in CLOSED or attempt.state != "NOT_SENT":
            return
        until, account = self.world.now + PAUSE, job.target.social_account_id
        pauses = promised.closed if answer == "channel limited" else promised.paused
        promised.after_step(partial(pauses.update, {account: until}))
