"""No matter what is known, the summary is made of complete sentences, and does not contradict the obstacles."""

import re
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.explaining import explain
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.passed_times import PassedTime, PassReason
from queue_service.domain.slot import LIVE, CancelReason, MoveReason, QueueSlot, SlotOrigin, SlotState, TakingBack
from testkit.clocks import START
from tests.unit.queue_service.explained import slot_of, target

MOMENTS = st.sampled_from([START + timedelta(minutes=number) for number in (-2000, -1, 0, 1, 59, 60, 61, 80, 1560)])
REASONS = st.sampled_from(["", "IN_LINE", "RETRY", "NOT_APPROVED", "ACCOUNT_NOT_CONNECTED", "SOMETHING_NEW"])
TARGETS = st.builds(
    target,
    st.sampled_from([None, *JobState]),
    REASONS,
    next_action_time=st.none() | MOMENTS,
    publish_time=st.none() | MOMENTS,
    external_url=st.sampled_from(["", "https://example.org/1"]),
    error_message=st.sampled_from(["", "No.", "no"]),
)
SLOTS = st.builds(
    lambda targets, state, origin, reason: slot_of(*targets, state=state, origin=origin, state_reason=reason),
    st.lists(TARGETS, min_size=1, max_size=12),
    st.sampled_from(SlotState),
    st.sampled_from(SlotOrigin),
    st.sampled_from(["", *CancelReason, "DRAFT_PUBLISHED", "NEEDS_ATTENTION", "SOMETHING_NEW"]),
)
KNOWN = st.builds(
    Circumstances,
    move_reason=st.sampled_from(["", *MoveReason, "SOMETHING_NEW"]),
    taking_back=st.sampled_from(TakingBack),
    pause_time=st.none() | MOMENTS,
    pauser=st.sampled_from(["", "ann"]),
    pause_reason=st.sampled_from(["", "a fire."]),
    is_disabled=st.booleans(),
    is_connected=st.none() | st.booleans(),
    next_due_time=st.none() | MOMENTS,
    is_approved=st.none() | st.booleans(),
    late_policy=st.builds(LatePolicy, action=st.sampled_from(LateAction)),
)
PASSED = st.none() | st.lists(st.builds(PassedTime, MOMENTS, st.sampled_from(PassReason)), max_size=60).map(tuple)


@given(slot=SLOTS, known=KNOWN, passed=PASSED, now=MOMENTS)
def test_every_summary_is_made_of_complete_sentences(
    slot: QueueSlot, known: Circumstances, passed: tuple[PassedTime, ...] | None, now: datetime
) -> None:
    found = explain(slot, known, passed, now=now)
    text = found.summary
    assert re.fullmatch(r"([A-Z].*[^.]\.)", text)
    assert not re.search(r"None|\.\.|  |<|\{|: ?\.|, ?\.", text)
    assert (slot.state in LIVE) == (" to go out on account" in text)
    hindered = [each for each in found.obstacles if each.reason != "NOT_DUE"]
    assert bool(hindered) == bool(re.search("does not go out yet|is not sent again", text))
    if hindered:
        assert "nothing is known" not in text.lower()
    assert all(each.message in text for each in hindered)
