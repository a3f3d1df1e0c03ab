"""People and programs that call Publisher, and what its answers promise them."""

from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import Row

from publisher_service.domain.destination import DestinationState
from publisher_service.domain.hold import Scope
from publisher_service.domain.resolution import Resolution, Said
from servicekit.faults import Fault, NotFound, Refused
from testkit.calls import call
from tests.usecase.publisher_service.machine.promised import Held
from tests.usecase.publisher_service.machine.world import World


class Callers:
    def __init__(self, world: World) -> None:
        self.world = world

    # holds

    async def hold(self, process: int, name: str, scope: Scope, scope_id: str) -> None:
        hold = f"{name}-{scope}-{scope_id}"
        before = await self.world.may_be_out()
        holding = await self.world.processes[process].hold(scope_id, scope=scope, hold=hold)
        held = Held(scope, scope_id, frozenset(holding.in_flight))
        if hold in self.world.releasing:
            return  # which of them came first?
        self.world.promised.held.setdefault(hold, held)
        self.world.promised.after_step(partial(self.world.promised.stop, hold))
        out = {row.id for row in before & await self.world.may_be_out() if held.covers(*_covered_by(row))}
        if hold in self.world.promised.held and out - held.in_flight:
            self.world.broken.append(f"{hold} does not list {out - held.in_flight}")

    async def release(self, process: int, number: int) -> None:
        if held := list(self.world.promised.held):
            hold = held[number % len(held)]
            # From now on, not from the answer on: the release may take effect at any time between.
            self.world.releasing.add(hold)
            del self.world.promised.held[hold]
            self.world.promised.stopped.pop(hold, None)
            await self.world.processes[process].release(hold)

    # accounts

    async def connect(self, process: int, account: str) -> None:
        self.world.tokens[account] += 1
        self.world.promised.paused.pop(account, None)
        await self.world.processes[process].connect(account, token=f"token-{self.world.tokens[account]}")

    async def disconnect(self, process: int, account: str) -> None:
        world, newest = self.world, self.world.tokens[account]
        world.ended_tokens.add((account, newest))
        before = await world.may_be_out()
        gone = await world.processes[process].disconnect(account)
        world.ended_tokens.add((account, world.tokens[account]))
        out = {row.id for row in before & await world.may_be_out() if row.social_account_id == account}
        (stored,) = await world.rows("select credentials from social_account where id = :id", id=account)
        if newest == world.tokens[account] and world.processes[process].token_in(stored.credentials, account):
            world.broken.append(f"the credentials of {account} are still there")
        if out - {*gone.in_flight}:
            world.broken.append(f"the disconnection of {account} does not list {out - {*gone.in_flight}}")
        erased, _ = world.promised.erased.get(account, (0, frozenset()))
        if newest > erased:
            world.promised.erased[account] = newest, frozenset(gone.in_flight)

    async def set_cap(self, process: int, account: str, cap: int | None) -> None:
        """Gives the account another daily cap for posts, or none."""
        promised = self.world.promised
        change = promised.caps.pop(account, None)
        try:
            updated = await self.world.processes[process].set_cap(account, cap)
            change = updated.version, cap
        except Refused as refusal:
            if refusal.reason != "CAP_BELOW_USED":
                raise
        promised.after_step(lambda: promised.keep_cap(account, change))

    async def leave_room(self, process: int, account: str, room: int) -> None:
        """Gives the account a cap that leaves room for so many posts today."""
        used = await self.world.rows(
            "select used from account_action where social_account_id = :account and day_end > :now",
            account=account,
            now=self.world.now,
        )
        await self.set_cap(process, account, room + (used[0].used if used else 0))

    async def switch(self, process: int, letter: str, account: str, state: DestinationState) -> None:
        """Activates or deactivates the destination of a post."""
        (target,) = self.world.draft(letter).targets(account)
        self.world.switched.add(target)
        self.world.promised.inactive.discard(target)
        with suppress(NotFound):
            await self.world.processes[process].switch(target, state)

    # posts

    async def retry(self, process: int, letter: str, account: str) -> None:
        with suppress(Refused, NotFound):
            job = await self.world.processes[process].retry(self.world.draft(letter).job_id(account))
            assert job.not_after is not None
            self.world.promised.called[job.id] = job.run, job.not_after

    async def publish_now(self, process: int, letter: str, account: str, *, over_cap: bool = False) -> None:
        """Sends a post at once, no matter what its slot is; what was taken back before may go out."""
        draft, canceled = self.world.draft(letter), self.world.promised.canceled
        target, job = draft.targets(account)[0], draft.job_id(account)
        if draft.saved is None or target not in draft.saved.targets:
            return
        self.world.urgent.add(job)
        before = canceled.pop(job, None)
        try:
            (result,) = await self.world.processes[process].publish(draft.saved, target, over_cap=over_cap)
            refused = bool(result.reason)
            if not refused and result.job.not_after is not None:
                self.world.promised.called[job] = result.job.run, result.job.not_after
        except Refused:
            refused = True
        if refused and before:
            canceled[job] = before

    async def resolve(self, process: int, letter: str, account: str) -> None:
        """A person says the truth about a post of unknown outcome."""
        world, draft = self.world, self.world.draft(letter)
        jobs = await world.rows("select * from post_job where id = :id", id=draft.job_id(account))
        if not jobs or jobs[0].state not in ("UNKNOWN", "NEEDS_ATTENTION"):
            return
        key = f"{jobs[0].id}-{jobs[0].run}"
        if world.may_still_come(key):
            return  # who could know it now?
        effects = world.provider.effects.get(key)
        said = Resolution(
            outcome=Said.PUBLISHED if effects else Said.NOT_PUBLISHED,
            external_id=effects[0] if effects else "",
            external_url="",
            publish_time=None,
            resolver="ann",
            note="",
        )
        if not effects:
            world.denied.add(key)
        try:
            await world.processes[process].resolve(call("ResolvePostJob"), jobs[0].id, said)
        except Fault as fault:
            # A look, or an answer, came first.
            if fault.reason != "POST_JOB_NOT_RESOLVABLE":
                raise


def _covered_by(row: Row[Any]) -> tuple[str, str, str]:
    return row.social_account_id, row.brand_id, row.campaign_id
