"""Checks hand-made histories: a good one passes, and each broken promise is found by its name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testkit.clocks import START
from testkit.stack.called_runs import Called, CalledRun
from testkit.stack.caps import Cap
from testkit.stack.edits import Edit
from testkit.stack.history import Acknowledged, History
from testkit.stack.promises import open_jobs, violations

Row = dict[str, Any]
DUE = START - timedelta(minutes=1)
EARLIER = DUE - timedelta(minutes=1)


def effect(**changes: Any) -> Row:
    return {"id": "sp-1", "idempotency_key": "job-1", "time": DUE.isoformat(), "text": "Text", **changes}


def request(**changes: Any) -> Row:
    return {"operation": "post", "status": 201, "idempotency_key": "job-1", "arrival": DUE.isoformat(), **changes}


def job(**changes: Any) -> Row:
    return {
        "organization_id": "o",
        "id": "job",
        "draft_id": "d",
        "social_account_id": "a",
        "brand_id": "",
        "channel": "facebook",
        "destination": "",
        "state": "PUBLISHED",
        "state_reason": "",
        "run": 1,
        "slot_id": "s",
        "schedule_time": DUE,
        "next_action_time": None,
        "lease_end": None,
        "external_id": "sp-1",
        "max_attempts": 5,
        **changes,
    }


def attempt(**changes: Any) -> Row:
    return {
        "post_job_id": "job",
        "run": 1,
        "idempotency_key": "job-1",
        "start_time": DUE - timedelta(milliseconds=20),
        **changes,
    }


def activity(**changes: Any) -> Row:
    return {"id": "1", "post_job_id": "job", "run": 1, "outcome": "SUCCESS", "create_time": DUE, **changes}


def slot(**changes: Any) -> Row:
    return {
        "organization_id": "o",
        "id": "s",
        "draft_id": "d",
        "social_account_id": "a",
        "state": "PUBLISHED",
        "schedule_time": DUE,
        **changes,
    }


def slot_target(**changes: Any) -> Row:
    return {
        "organization_id": "o",
        "slot_id": "s",
        "channel": "facebook",
        "destination": "",
        "job_state": "PUBLISHED",
        "of_another_slot": False,
        **changes,
    }


def draft(**changes: Any) -> Row:
    place = ("a", "facebook", "")
    return {"organization_id": "o", "id": "d", "state": "PUBLISHED", "text": "Text", "targets": [place], **changes}


def edit(**changes: Any) -> Edit:
    fields: Row = {"called": DUE + timedelta(seconds=1), "answered": DUE + timedelta(seconds=2), **changes}
    return Edit(organization_id="o", draft_id="d", **fields)


def called(**changes: Any) -> Called:
    fields: Row = {"post_job_id": "job", "run": 1, "version": 1, "what": "PublishNow", **changes}
    return Called(runs=(CalledRun(organization_id="o", **fields),))


def edited(*edits: Edit, **changes: Any) -> History:
    return replace(GOOD, acknowledged=Acknowledged(edits=edits), **changes)


GOOD = History(
    now=START,
    acknowledged=Acknowledged(drafts={("o", "d")}, slots={("o", "s")}),
    effects=[effect()],
    requests=[request()],
    jobs=[job()],
    attempts=[attempt()],
    activities=[activity()],
    slots=[slot()],
    slot_targets=[slot_target()],
    drafts=[draft()],
    draft_jobs=[{"organization_id": "o", "id": "job", "state": "PUBLISHED"}],
)


def history(state: str, **changes: Any) -> History:
    """Makes a history whose job is in that state, according to all services."""
    everywhere = {
        "jobs": [job(state=state, external_id="" if state != "PUBLISHED" else "sp-1")],
        "slots": [slot(state=state if state in {"FAILED", "MISSED", "CANCELED"} else "DISPATCHED")],
        "slot_targets": [slot_target(job_state=state)],
        "drafts": [draft(state="PUBLISHING" if state in {"SENDING", "UNKNOWN"} else "FAILED")],
        "draft_jobs": [{"organization_id": "o", "id": "job", "state": state}],
    }
    return replace(GOOD, **(everywhere | changes))


def names(found: list[str]) -> set[str]:
    return {text.partition(":")[0] for text in found}


def test_a_good_history_keeps_every_promise() -> None:
    assert violations(GOOD) == []


def test_a_failure_without_effect_keeps_every_promise() -> None:
    assert violations(history("FAILED", effects=[], activities=[activity(outcome="FAILED")])) == []


def test_what_is_not_due_may_be_open() -> None:
    later = START + timedelta(hours=1)
    waiting = history(
        "SCHEDULED",
        effects=[],
        attempts=[],
        activities=[],
        jobs=[job(state="SCHEDULED", external_id="", schedule_time=later)],
        slots=[slot(state="SCHEDULED", schedule_time=later)],
        drafts=[draft(state="SCHEDULED")],
    )
    assert violations(waiting) == []


def test_a_job_that_cannot_end_may_stay_open_if_named() -> None:
    unknown = history("UNKNOWN", jobs=[job(state="UNKNOWN", external_id="", next_action_time=START)])
    assert names(violations(unknown)) == {"G2"}
    assert violations(unknown, unanswerable={"job"}) == []


def taken_back_in_part(**changes: Any) -> History:
    """Makes a history in which a removal was too late for one target of a draft, but not for the other one."""
    other = {"id": "job-2", "state": "CANCELED"}
    mixed = replace(
        GOOD,
        acknowledged=replace(GOOD.acknowledged, asked_to_remove={("o", "d")}),
        jobs=[job(), job(**other, channel="x", external_id="", schedule_time=None)],
        slots=[slot(state="PARTIALLY_PUBLISHED")],
        slot_targets=[slot_target(), slot_target(channel="x", job_state="CANCELED")],
        drafts=[draft(state="PARTIALLY_PUBLISHED", targets=[("a", "facebook", ""), ("a", "x", "")])],
        draft_jobs=[*GOOD.draft_jobs, {"organization_id": "o", **other}],
    )
    return replace(mixed, **changes)


def test_a_removal_may_be_too_late_for_one_of_two_targets() -> None:
    assert violations(taken_back_in_part()) == []


def removed(**changes: Any) -> History:
    """Makes a history in which a call sent the post of a slot that was removed beside it."""
    known = Acknowledged(called=called(), asked_to_remove={("o", "d")})
    return replace(GOOD, acknowledged=replace(known, **changes), slots=[slot(state="CANCELED")])


def test_a_removal_leaves_a_run_alone_that_a_call_has_begun() -> None:
    assert violations(removed()) == []
    older = slot(id="older", state="CANCELED")
    again = replace(removed(), slots=[older, slot()], slot_targets=[slot_target(slot_id="older"), slot_target()])
    assert violations(again) == []
    assert names(violations(removed(asked_to_remove=frozenset()))) == {"G8"}


BAD: Mapping[str, tuple[str, Callable[[], History]]] = {
    "a draft is gone": ("G0", lambda: replace(GOOD, drafts=[])),
    "a slot is gone": ("G0", lambda: replace(GOOD, slots=[], slot_targets=[])),
    "a slot without a job": ("G0", lambda: replace(GOOD, slot_targets=[slot_target(), slot_target(channel="x")])),
    "an effect out of nowhere": ("G0", lambda: replace(GOOD, effects=[effect(), effect(idempotency_key="other-1")])),
    "a post that went out twice": ("G1", lambda: replace(GOOD, effects=[effect(), effect(id="sp-2")])),
    "a post of two runs": (
        "G1",
        lambda: replace(
            GOOD,
            effects=[effect(), effect(id="sp-2", idempotency_key="job-2")],
            attempts=[attempt(), attempt(idempotency_key="job-2")],
        ),
    ),
    "more requests than attempts": ("max_attempts", lambda: replace(GOOD, requests=[request(status=503)] * 6)),
    "a target that was given up": ("G2 (targets)", lambda: history("CANCELED", effects=[], slots=[slot()])),
    "a target that was given up though nobody asked": (
        "G2 (targets)",
        lambda: taken_back_in_part(acknowledged=GOOD.acknowledged),
    ),
    "a draft that hides a target that was given up": (
        "G8",
        lambda: taken_back_in_part(drafts=[draft(targets=[("a", "facebook", ""), ("a", "x", "")])]),
    ),
    "a target without a job": ("G2 (targets)", lambda: replace(GOOD, jobs=[], draft_jobs=[])),
    "an event that was never published": ("G2 (events)", lambda: replace(GOOD, left_over=["1 row in outbox"])),
    "a job that is stuck": ("G2", lambda: history("SCHEDULED", effects=[])),
    "a slot that is stuck": ("G2", lambda: replace(GOOD, slots=[slot(state="DISPATCHED")])),
    "an open job that will never move": ("G2", lambda: history("READY", effects=[])),
    "an ended job that would move": ("G2", lambda: replace(GOOD, jobs=[job(next_action_time=START)])),
    "a post that is not there": ("G3", lambda: replace(GOOD, effects=[])),
    "a post with another external id": ("G3", lambda: replace(GOOD, effects=[effect(id="sp-9")])),
    "an effect of a job that still waits": (
        "G3",
        lambda: history("WAITING", jobs=[job(state="WAITING", external_id="", next_action_time=START)]),
    ),
    "a failure that is out there": ("G4", lambda: history("FAILED")),
    "a miss that is out there": ("G4", lambda: history("MISSED")),
    "a cancellation that is out there": ("G4", lambda: history("CANCELED")),
    "a post before its time": (
        "G7",
        lambda: replace(
            GOOD,
            effects=[effect(time=(DUE - timedelta(milliseconds=51)).isoformat())],
            attempts=[attempt(start_time=DUE - timedelta(seconds=1))],
        ),
    ),
    "Drafts that lacks an event": ("G8", lambda: replace(GOOD, draft_jobs=[])),
    "Drafts with another state": (
        "G8",
        lambda: replace(GOOD, draft_jobs=[{"organization_id": "o", "id": "job", "state": "UNKNOWN"}]),
    ),
    "a slot with another state": ("G8", lambda: replace(GOOD, slot_targets=[slot_target(job_state="FAILED")])),
    "a slot that does not follow from its jobs": ("G8", lambda: replace(GOOD, slots=[slot(state="FAILED")])),
    "a draft that does not follow from its jobs": ("G8", lambda: replace(GOOD, drafts=[draft(state="SCHEDULED")])),
    "a draft that hides an unknown outcome": (
        "G8",
        lambda: history(
            "UNKNOWN",
            jobs=[job(state="UNKNOWN", external_id="", next_action_time=START)],
            drafts=[draft(state="PUBLISHED")],
        ),
    ),
    "an older text after the answer": (
        "G21",
        lambda: edited(edit(older={"Text"}, answered=DUE - timedelta(seconds=1))),
    ),
    "an older text that was out before the call": ("G21", lambda: edited(edit(older={"Text"}))),
    "a post on a removed target": ("G21", lambda: edited(edit(removed={("a", "facebook", "")}))),
    "a draft that shows another text": ("G21", lambda: replace(GOOD, drafts=[draft(text="Newer text")])),
    "a post over the cap": (
        "G12",
        lambda: replace(
            GOOD,
            acknowledged=Acknowledged(
                caps=[Cap(organization_id="o", social_account_id="a", most=0, asked=EARLIER, answered=EARLIER)]
            ),
        ),
    ),
    "a post that the log lacks": ("G12", lambda: replace(GOOD, activities=[])),
    "a run that a call began and that is gone": (
        "calls",
        lambda: replace(GOOD, acknowledged=Acknowledged(called=called(run=2))),
    ),
    "a removed slot of which a post went out": ("G8", lambda: removed(called=Called())),
    "an effect before its attempt": (
        "G10",
        lambda: replace(GOOD, attempts=[attempt(start_time=DUE + timedelta(milliseconds=1))]),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_broken_promise_is_found(name: str) -> None:
    promise, make = BAD[name]
    found = violations(make())
    assert promise in names(found), found


def test_an_older_text_that_the_answer_names_keeps_every_promise() -> None:
    assert violations(edited(edit(older={"Text"}, in_flight={"job"}), drafts=[draft(text="Newer text")])) == []


def test_a_target_put_back_in_time_may_go_out() -> None:
    out = edit(removed={("a", "facebook", "")}, called=DUE - timedelta(seconds=3))
    assert violations(edited(out, edit(called=DUE - timedelta(seconds=1)))) == []


def test_a_429_answer_uses_up_no_attempt() -> None:
    assert violations(replace(GOOD, requests=[request(status=429)] * 9)) == []


def test_a_slot_keeps_the_final_state_of_a_job_with_a_newer_slot() -> None:
    again = replace(
        GOOD,
        slots=[slot(state="FAILED", id="older"), slot()],
        slot_targets=[slot_target(slot_id="older", job_state="FAILED"), slot_target()],
    )
    assert violations(again) == []


def test_a_failure_on_a_removed_target_does_not_count() -> None:
    other = job(id="other", channel="instagram_feed", state="FAILED", external_id="", slot_id="older")
    reported = {"organization_id": "o", "id": "other", "state": "FAILED"}
    assert violations(replace(GOOD, jobs=[job(), other], draft_jobs=[*GOOD.draft_jobs, reported])) == []


def test_only_a_target_without_a_time_may_be_left_open() -> None:
    extra = job(id="other", channel="instagram_feed", state="PENDING", schedule_time=None, external_id="")
    assert list(open_jobs(replace(GOOD, jobs=[job(), extra]))) == []
    assert list(open_jobs(history("PENDING"))) == ["job job is PENDING"]


def commented(state: str = "PUBLISHED", **changes: Any) -> History:
    """A post that is out, with a comment."""
    comment = job(id="comment", part=1, follows="sp-1", external_id="sp-2", slot_id="", state=state)
    below = effect(**{"id": "sp-2", "idempotency_key": "comment-1", "seq": 2, "follows": "sp-1", **changes})
    good = history("PUBLISHED")
    return replace(
        good,
        jobs=[*good.jobs, comment],
        attempts=[*good.attempts, attempt(post_job_id="comment", idempotency_key="comment-1")],
        effects=[
            *({"seq": 1, **each} for each in good.effects),
            *([below] if state == "PUBLISHED" else ()),
        ],
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (commented(), set()),
        (commented(seq=0), {"follow-ups"}),
        (commented(follows="sp-9"), {"follow-ups"}),
        (commented("PENDING"), {"follow-ups"}),
        (commented("FAILED"), set()),
    ],
    ids=["in order", "before its post", "below another post", "forgotten", "failed"],
)
def test_a_comment_goes_out_below_its_post_and_behind_it(found: History, expected: set[str]) -> None:
    assert {each for each in names(violations(found)) if each == "follow-ups"} == expected
