"""Explanations: how each check of a post job stands, and which one keeps the post back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from channels.rules import FollowUpKind
from publisher_service.domain.claim import Verdict
from publisher_service.domain.follow_up import name_of
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.sentences import (
    Value,
    going_sentence,
    idle_sentence,
    open_sentence,
    over_sentence,
    part_sentence,
    passed_sentence,
)


class Beside(StrEnum):
    """A verdict of an explanation that no claim gives."""

    # The job has no slot, so no claim is ever tried.
    NO_TIME = "NO_TIME"
    # No claim is tried before the time of the slot.
    NOT_DUE = "NOT_DUE"
    # The send finds that no key of this process opens the account's credentials.
    CREDENTIALS_UNREADABLE = "CREDENTIALS_UNREADABLE"


class CheckState(StrEnum):
    PASSED = "PASSED"
    OPEN = "OPEN"
    NOT_APPLICABLE = "NOT_APPLICABLE"


# When one of these is open, nothing is sent that the later checks could concern.
_CLOSING: Final = frozenset({Verdict.UNREADABLE, Verdict.STALE, Verdict.ENDED, Verdict.OPEN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The finding of a check."""

    name: str
    verdict: Verdict | Beside
    is_open: bool
    applies: bool
    values: Mapping[str, Value]
    clear_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A check, as a caller sees it."""

    name: str
    state: CheckState
    # Empty unless the check is open.
    verdict: str
    values: Mapping[str, Value]
    clear_time: datetime | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    job: PostJob
    checks: Sequence[Checked]
    verdict: str
    clear_time: datetime | None
    sentence: str
    read_time: datetime


def explain(
    job: PostJob, found: Sequence[Found], *, now: datetime, kind: FollowUpKind = FollowUpKind.COMMENT
) -> Explanation:
    """Explains a job by what its checks have found, in the order in which they are made.

    `kind` is that of the follow-ups of its channel.
    """
    checks: list[Checked] = []
    first: Checked | None = None
    is_over = False
    for each in found:
        checked = _checked(_with_names(each, job, kind), is_over=is_over)
        checks.append(checked)
        if checked.state is CheckState.OPEN:
            first = first or checked
            is_over = is_over or each.verdict in _CLOSING
    return Explanation(
        job=job,
        checks=checks,
        verdict=first.verdict if first else Verdict.CLAIMED,
        clear_time=first.clear_time if first else None,
        sentence=_of_part(job, kind, first.sentence if first else going_sentence(job.state)),
        read_time=now,
    )


def _with_names(found: Found, job: PostJob, kind: FollowUpKind) -> Found:
    """Adds to the check of what a follow-up follows the names by which people call the two parts."""
    if found.verdict is not Verdict.PARENT_PENDING or not job.part:
        return found
    names = {"name": name_of(job.part, kind), "before": name_of(job.part - 1, kind)}
    return replace(found, values={**found.values, **names})


def _of_part(job: PostJob, kind: FollowUpKind, sentence: str) -> str:
    """Returns the sentence about the whole job; one about a follow-up names it."""
    return part_sentence(name_of(job.part, kind), sentence) if job.part else sentence


def _checked(found: Found, *, is_over: bool) -> Checked:
    values = {name: value for name, value in found.values.items() if value not in (None, "")}
    if is_over:
        return _not_applicable(found.name, over_sentence(), {})
    if not found.applies:
        return _not_applicable(found.name, idle_sentence(found.name), values)
    if found.is_open:
        return Checked(
            name=found.name,
            state=CheckState.OPEN,
            verdict=found.verdict,
            values=values,
            clear_time=found.clear_time,
            sentence=open_sentence(found.name, values),
        )
    return Checked(
        name=found.name,
        state=CheckState.PASSED,
        verdict="",
        values=values,
        clear_time=None,
        sentence=passed_sentence(found.name, values),
    )


def _not_applicable(name: str, sentence: str, values: Mapping[str, Value]) -> Checked:
    return Checked(
        name=name, state=CheckState.NOT_APPLICABLE, verdict="", values=values, clear_time=None, sentence=sentence
    )
