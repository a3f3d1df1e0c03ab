"""Promises of Publisher, and which of them an attempt breaks.

What a call answers with a list of what is in flight is promised from the answer on. All else is promised from the end
of its step on, because another process may have claimed a post in the middle of it.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

from postflow.drafts.v1 import draft_pb2
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.domain.claim import Claimed
from publisher_service.domain.hold import Scope
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import PostJob, Target

Order = tuple[int, str, int]


@dataclass(frozen=True)
class Held:
    """A hold in force, and the posts that may still go out under it."""

    scope: Scope
    scope_id: str
    in_flight: frozenset[str] = frozenset()

    def covers(self, account: str, brand: str, campaign: str) -> bool:
        match self.scope:
            case Scope.ACCOUNT:
                return self.scope_id == account
            case Scope.BRAND:
                return self.scope_id == brand
            case Scope.CAMPAIGN:
                return self.scope_id == campaign
            case _:
                # All accounts are of one organization and one provider.
                return True


@dataclass
class Promised:
    held: dict[str, Held] = field(default_factory=dict)
    # The newest slot of each job that was taken back.
    canceled: dict[str, Order] = field(default_factory=dict)
    # The lowest revision of each draft that may go out, and the jobs that may be out with an older one.
    withdrawn: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    # The same, without exceptions: an attempt that begins in a later step is in no list.
    stopped: dict[str, Held] = field(default_factory=dict)
    forbidden: dict[str, int] = field(default_factory=dict)
    # The newest token of each account that was erased, and the jobs that may be out with it.
    erased: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    # What is announced and applied: drafts, and the schedules of accounts.
    drafts: dict[str, SavedDraft] = field(default_factory=dict)
    schedules: dict[str, AccountSchedule] = field(default_factory=dict)
    # The cap of an account for posts, None without one, by the version of the account.
    caps: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    inactive: set[Target] = field(default_factory=set)
    # Until when the provider takes no posts of an account.
    paused: dict[str, datetime] = field(default_factory=dict)
    closed: dict[str, datetime] = field(default_factory=dict)
    # The slot and the run of each job whose run has failed or was missed.
    over: dict[str, tuple[Order, int]] = field(default_factory=dict)
    # The run of each job that a call began last, and its latest time.
    called: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    # When effects of an account were claimed, by key.
    sent: defaultdict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))
    _after_step: list[Callable[[], None]] = field(default_factory=list)

    def after_step(self, promise: Callable[[], None]) -> None:
        self._after_step.append(promise)

    def end_step(self) -> None:
        for promise in self._after_step:
            promise()
        self._after_step.clear()

    def stop(self, hold: str) -> None:
        """Lets nothing begin under the hold any more, unless it has been released meanwhile."""
        if hold in self.held:
            self.stopped[hold] = self.held[hold]

    def keep_schedule(self, announced: AccountSchedule) -> None:
        """Keeps the newest of concurrent ones."""
        account = announced.social_account_id
        known = self.schedules.get(account)
        if known is None or known.version < announced.version:
            self.schedules[account] = announced

    def keep_cap(self, account: str, change: tuple[int, int | None] | None) -> None:
        """Keeps the newer of concurrent changes."""
        known = self.caps.get(account)
        if change is not None and (known is None or known[0] < change[0]):
            self.caps[account] = change

    def cap_of(self, account: str) -> int | None:
        return self.caps.get(account, (0, None))[1]

    def zone_of(self, account: str) -> ZoneInfo | None:
        """Returns the zone whose days count; None while that is not certain."""
        schedule = self.schedules.get(account)
        return None if schedule is None else ZoneInfo(schedule.time_zone or "UTC")

    def day_of(self, account: str, time: datetime) -> date | None:
        zone = self.zone_of(account)
        return None if zone is None else time.astimezone(zone).date()

    # What an attempt breaks

    def broken_by_claim(self, claimed: Claimed, now: datetime) -> list[str]:
        job = claimed.job
        account, order = job.target.social_account_id, _order_of(job)
        found = []
        if job.id in self.canceled and order <= self.canceled[job.id]:
            found.append(f"from the slot {order}, which was taken back")
        over, run = self.over.get(job.id, ((0, "", 0), 0))
        if job.run > run > 0 and order <= over and not job.is_called:
            found.append(f"in run {job.run} from the slot {order}, whose run has ended")
        found += [f"under the hold {hold}" for hold, held in self.stopped.items() if held.covers(*_covered_by(job))]
        if job.content_revision < self.forbidden.get(job.draft_id, 0):
            found.append(f"in revision {job.content_revision}, which is withdrawn")
        if job.target in self.inactive:
            found.append("to an inactive destination")
        if now < self.paused.get(account, now) or now < self.closed.get(account, now):
            found.append("although the provider has closed")
        return [
            f"{job.id} is claimed {each}"
            for each in [*found, *self._broken_by_content(claimed), *self._broken_by_schedule(job, now)]
        ]

    def _broken_by_content(self, claimed: Claimed) -> list[str]:
        job, found = claimed.job, []
        text = draft_pb2.DraftContent.FromString(claimed.content).text
        if not text.endswith(f"in revision {job.content_revision}"):
            found.append(f"in revision {job.content_revision} with {text!r}")
        draft = self.drafts.get(job.draft_id)
        if draft is not None:
            if job.content_revision == draft.revision and not draft.approved:
                found.append(f"in revision {draft.revision}, which is not approved")
            if job.target not in draft.targets:
                found.append("although its draft has lost the target")
            if (job.brand_id, job.campaign_id) != (draft.brand_id, draft.campaign_id):
                found.append(f"as one of {job.brand_id!r} and {job.campaign_id!r}")
        return found

    def _broken_by_schedule(self, job: PostJob, now: datetime) -> list[str]:
        account = job.target.social_account_id
        schedule, zone = self.schedules.get(account), self.zone_of(account)
        if schedule is None or zone is None:
            return []
        found = [] if schedule.enabled else ["although its account is disabled"]
        if job.is_sent_now:
            return found
        if schedule.window is not None and not schedule.window.contains(now.astimezone(zone).replace(tzinfo=None)):
            found.append("outside of the send window")
        own = f"{job.id}-{job.run}"
        last = max((time for key, time in self.sent[account].items() if key != own), default=None)
        if schedule.min_spacing is not None and last is not None and now < last + schedule.min_spacing:
            found.append(f"{now - last} after another post of its account")
        return found

    def broken_by_request(self, claimed: Claimed, token: int) -> list[str]:
        """Returns the promises that a request breaks which follows its claim at once."""
        job = claimed.job
        found = [
            f"under the hold {hold}"
            for hold, held in self.held.items()
            if held.covers(*_covered_by(job)) and job.id not in held.in_flight
        ]
        below, in_flight = self.withdrawn.get(job.draft_id, (0, frozenset[str]()))
        if job.content_revision < below and job.id not in in_flight:
            found.append(f"in revision {job.content_revision}, withdrawn below {below}")
        erased, in_flight = self.erased.get(job.target.social_account_id, (0, frozenset[str]()))
        if token <= erased and job.id not in in_flight:
            found.append(f"with token {token}, erased up to {erased}")
        return [f"{job.id} is sent {each}" for each in found]

    def stops(self, claimed: Claimed, token: int) -> set[str]:
        """Returns what stops a request that has not begun, even if the answers have listed its post."""
        found = {hold for hold, held in self.held.items() if held.covers(*_covered_by(claimed.job))}
        if token <= self.erased.get(claimed.job.target.social_account_id, (0, frozenset[str]()))[0]:
            found.add("disconnected")
        return found


def _order_of(job: PostJob) -> Order:
    return job.slot_sequence, job.slot_id, job.slot_revision


def _covered_by(job: PostJob) -> tuple[str, str, str]:
    return job.target.social_account_id, job.brand_id, job.campaign_id
