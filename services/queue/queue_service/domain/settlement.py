"""Settling a slot by the reports of its post jobs. The result does not depend on the order of the reports.

The values are tuples: every post makes some of each, and frozen dataclasses cost three times as much to make.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from queue_service.domain.command import ANSWERED_DELAY
from queue_service.domain.job import ANSWERED, ENDED, FINAL, TAKEN_BACK, UNDER_WAY, JobState
from queue_service.domain.slot import COUNTED, DRAFT_PUBLISHED, LIVE, SPACING, CancelReason, SlotState, TakingBack
from servicekit.versions import newest

_ASKED_FOR = frozenset(CancelReason)


class JobReport(NamedTuple):
    """A post job as Publisher has announced it, with the fields that its slot needs."""

    organization_id: str
    slot_id: str
    slot_revision: int
    draft_id: str
    social_account_id: str
    channel: str
    destination: str
    job_id: str
    state: JobState
    version: int
    external_url: str
    error_message: str
    state_reason: str
    next_action_time: datetime | None
    publish_time: datetime | None
    # PublishNow sends it, with or without a slot; None if the report does not tell.
    publish_now: bool | None = False
    # 0 for the post, n for its n-th follow-up.
    part: int = 0

    @property
    def slot_key(self) -> tuple[str, str]:
        return self.organization_id, self.slot_id

    @property
    def account(self) -> tuple[str, str]:
        return self.organization_id, self.social_account_id

    @property
    def draft_on_account(self) -> tuple[str, str, str]:
        return self.organization_id, self.draft_id, self.social_account_id

    @property
    def is_plain_publication(self) -> bool:
        """Returns whether the report says nothing but that the target was sent, when and where."""
        return (
            self.state is JobState.PUBLISHED
            and self.publish_time is not None
            and not (self.error_message or self.state_reason or self.next_action_time)
        )


class TargetProgress(NamedTuple):
    """The job of one target as Publisher announced it. `report` is the report that brought it, until it is stored.

    If `of_another_slot`, the job ended with another slot of the draft, so this slot has nothing to send.
    """

    channel: str
    destination: str
    job_state: JobState | None
    job_version: int
    next_action_time: datetime | None
    publish_time: datetime | None
    of_another_slot: bool = False
    state_reason: str = ""
    report: JobReport | None = None
    # PublishNow has it: the slot sends it no more, and nobody can take it back.
    sent_now: bool = False

    @property
    def is_taken_back(self) -> bool:
        """Returns whether Publisher has given the target back unsent."""
        return self.job_state is JobState.CANCELED and self.state_reason == TAKEN_BACK and not self.of_another_slot


class SlotProgress(NamedTuple):
    """The part of a slot that settlement reads and changes."""

    organization_id: str
    slot_id: str
    draft_id: str
    social_account_id: str
    revision: int
    schedule_time: datetime
    state: SlotState
    next_emit_at: datetime | None
    expected_time: datetime | None
    publish_time: datetime | None
    is_answered: bool
    state_reason: str
    taking_back: TakingBack
    targets: tuple[TargetProgress, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.slot_id

    @property
    def account(self) -> tuple[str, str]:
        return self.organization_id, self.social_account_id

    @property
    def draft_on_account(self) -> tuple[str, str, str]:
        return self.organization_id, self.draft_id, self.social_account_id


class Settled(NamedTuple):
    """A slot before and after the reports of a batch."""

    before: SlotProgress
    after: SlotProgress

    @property
    def has_returned(self) -> bool:
        """Returns whether the slot has been taken back and is to be sent under its next revision."""
        return self.before.state is SlotState.DISPATCHED and self.after.state is SlotState.SCHEDULED

    @property
    def is_canceled_as_asked(self) -> bool:
        """Returns whether a call has canceled the slot, which announces that."""
        return self.before.taking_back is TakingBack.CANCEL and self.after.state is SlotState.CANCELED

    def may_free_a_time(self, earliest: datetime) -> bool:
        """Returns whether a slot time from `earliest` on may be free now.

        This check is cheap, because almost all slots are sent in time and free nothing. It is never wrongly False.
        """
        if self.before.state is self.after.state:
            return False
        return self.after.state not in COUNTED or self.after.schedule_time + SPACING > earliest


def settle(slot: SlotProgress, reports: Sequence[JobReport], *, now: datetime) -> SlotProgress:
    """Applies reports about targets of the slot. Returns an equal value when they are not news."""
    relevant = [report for report in reports if _concerns(slot, report)]
    if not relevant:
        return slot
    targets = _reported(slot, relevant)
    if slot.state is SlotState.CANCELED:
        news = [target.report for target in targets if target.report is not None]
        # The draft was taken out of the queue, and a call has sent it; older reports change nothing.
        if not news or any(_leaves_canceled(slot, report) for report in news):
            return slot._replace(targets=targets)
    if _returns(slot, targets):
        return _returned(slot, targets, now)
    state = _state(slot.state, targets)
    is_answered = all(target.job_state in ANSWERED for target in targets)
    return slot._replace(
        state=state,
        next_emit_at=_next_emit_at(slot, state, targets, now),
        expected_time=_expected(slot, targets) if state in LIVE else None,
        publish_time=_published(slot, state, targets, now),
        is_answered=is_answered,
        state_reason=_reason(slot, state, targets),
        taking_back=slot.taking_back if state in LIVE or slot.state not in LIVE else TakingBack.NO,
        targets=targets,
    )


def has_lost_its_time(slot: SlotProgress) -> bool:
    """Returns whether a target came back to a slot that is not dispatched yet, and its job lacks the slot's time.

    Publisher then cannot know whether the slot is still live.
    """
    return slot.state is SlotState.SCHEDULED and any(
        target.report is not None and target.job_state is JobState.PENDING for target in slot.targets
    )


def _returns(slot: SlotProgress, targets: tuple[TargetProgress, ...]) -> bool:
    """Returns whether the slot goes back to the queue: what was taken back is to be sent after all.

    It waits until its other targets have ended, because their reports name the revision that it has now.
    """
    return (
        slot.state is SlotState.DISPATCHED
        and slot.taking_back is TakingBack.RETURN
        and all(target.job_state in ENDED for target in targets)
        and any(target.is_taken_back for target in targets)
    )


def _returned(slot: SlotProgress, targets: tuple[TargetProgress, ...], now: datetime) -> SlotProgress:
    """Returns the slot under its next revision, as if what was taken back had its time but no command yet.

    The versions of the jobs stay, so that no older report counts.
    """
    return slot._replace(
        revision=slot.revision + 1,
        state=SlotState.SCHEDULED,
        next_emit_at=None,
        expected_time=None,
        publish_time=_published(slot, SlotState.SCHEDULED, targets, now),
        is_answered=False,
        state_reason="",
        taking_back=TakingBack.NO,
        targets=tuple(
            target._replace(job_state=JobState.SCHEDULED, next_action_time=None, state_reason="")
            if target.is_taken_back
            else target
            for target in targets
        ),
    )


def outcome(states: Iterable[JobState | None]) -> SlotState:
    """Returns the state of a slot whose targets have all ended."""
    ends = set(states)
    if JobState.NEEDS_ATTENTION in ends:
        return SlotState.NEEDS_ATTENTION
    if JobState.PUBLISHED in ends:
        return SlotState.PUBLISHED if len(ends) == 1 else SlotState.PARTIALLY_PUBLISHED
    if ends == {JobState.MISSED}:
        return SlotState.MISSED
    if ends == {JobState.CANCELED}:
        return SlotState.CANCELED
    return SlotState.FAILED


def _concerns(slot: SlotProgress, report: JobReport) -> bool:
    """Returns False for answers to another slot or revision, unless they are final: no target is sent twice.

    The end of a run that a call began is news of a canceled slot, too, under the revision that it had until then:
    Publisher, which may not have heard of the cancellation before, keeps that on record.
    """
    if report.state in FINAL:
        return True
    has_ended = slot.state is SlotState.CANCELED and report.state in ENDED
    return report.slot_id == slot.slot_id and (has_ended or report.slot_revision == slot.revision)


def _leaves_canceled(slot: SlotProgress, report: JobReport) -> bool:
    """Returns whether the slot stays CANCELED: a call has begun the run, or it had ended before Publisher knew."""
    return bool(report.publish_now) or (report.state not in FINAL and report.slot_revision != slot.revision)


def _reported(slot: SlotProgress, reports: Sequence[JobReport]) -> tuple[TargetProgress, ...]:
    if len(reports) > 1:
        reports = newest(reports, key=lambda each: (each.channel, each.destination), version=lambda each: each.version)
    by_target = {(report.channel, report.destination): report for report in reports}
    return tuple(
        _updated(target, by_target.get((target.channel, target.destination)), slot.slot_id) for target in slot.targets
    )


def _updated(target: TargetProgress, report: JobReport | None, slot_id: str) -> TargetProgress:
    if report is None or report.version <= target.job_version:
        return target
    return TargetProgress(
        channel=target.channel,
        destination=target.destination,
        job_state=report.state,
        job_version=report.version,
        next_action_time=report.next_action_time,
        publish_time=report.publish_time,
        of_another_slot=report.slot_id != slot_id,
        state_reason=report.state_reason,
        report=report,
        sent_now=report.state in UNDER_WAY and _is_sent_now(target, report),
    )


def _is_sent_now(target: TargetProgress, report: JobReport) -> bool:
    return target.sent_now if report.publish_now is None else report.publish_now


def _state(state: SlotState, targets: tuple[TargetProgress, ...]) -> SlotState:
    """Returns the slot's next state.

    A slot that has ended never becomes live again, because another slot may have taken its time, but its outcome may
    change. Targets sent by another slot do not count. A slot without other targets is CANCELED, which frees its time.
    """
    if not all(target.job_state in ENDED for target in targets):
        return state
    own = [target.job_state for target in targets if not target.of_another_slot]
    return outcome(own) if own else SlotState.CANCELED


def _reason(slot: SlotProgress, state: SlotState, targets: tuple[TargetProgress, ...]) -> str:
    """Returns why a slot that sent nothing is CANCELED; of one that is being canceled, why it will be."""
    if state in LIVE | {SlotState.CANCELED}:
        if slot.state_reason in _ASKED_FOR:
            return slot.state_reason
        if slot.taking_back is TakingBack.CANCEL:
            return CancelReason.REMOVED
    elsewhere = {target.job_state for target in targets if target.of_another_slot}
    if state is not SlotState.CANCELED or not elsewhere:
        return ""
    return JobState.NEEDS_ATTENTION if JobState.NEEDS_ATTENTION in elsewhere else DRAFT_PUBLISHED


def _next_emit_at(
    slot: SlotProgress, state: SlotState, targets: tuple[TargetProgress, ...], now: datetime
) -> datetime | None:
    if state is not SlotState.DISPATCHED:
        return slot.next_emit_at if state in LIVE else None
    if all(target.job_state in ANSWERED for target in targets):
        return now + ANSWERED_DELAY
    # A target that was removed and came back needs a command. A job without a time was removed, even if unreported.
    return now if _came_back(slot.targets, targets) else slot.next_emit_at


def _came_back(before: tuple[TargetProgress, ...], after: tuple[TargetProgress, ...]) -> bool:
    return any(
        new is not old and (new.job_state is JobState.PENDING or old.job_state in ANSWERED)
        for old, new in zip(before, after, strict=True)
        if new.job_state not in ANSWERED
    )


def _expected(slot: SlotProgress, targets: tuple[TargetProgress, ...]) -> datetime | None:
    waits = [
        target.next_action_time
        for target in targets
        if target.job_state is JobState.WAITING and target.next_action_time is not None
    ]
    later = [moment for moment in waits if moment > slot.schedule_time]
    return min(later, default=None)


def _published(
    slot: SlotProgress, state: SlotState, targets: tuple[TargetProgress, ...], now: datetime
) -> datetime | None:
    times = [
        target.publish_time for target in targets if target.publish_time is not None and not target.of_another_slot
    ]
    if times:
        return min(times)
    was_sent = state in {SlotState.PUBLISHED, SlotState.PARTIALLY_PUBLISHED}
    return slot.publish_time or (now if was_sent else None)
