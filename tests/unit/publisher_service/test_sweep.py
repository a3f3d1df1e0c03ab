"""A step of the sweep submits what is due and asks about unknown outcomes."""

from collections.abc import Sequence

import pytest

from publisher_service.application.recover_jobs import Question, Recovered
from publisher_service.domain.claim import Command
from publisher_service.domain.post_job import JobState
from publisher_service.engine.sweep import Sweep
from tests.unit.publisher_service.post_jobs import command, sending


@pytest.mark.parametrize("more", [False, True])
async def test_a_step_submits_due_commands_and_asks_questions(more: bool) -> None:
    submitted, asked = list[Sequence[Command]](), list[Sequence[Question]]()
    found = Recovered(
        due=[command("slot-1")],
        questions=[Question(job=sending(JobState.UNKNOWN), provider="sandbox")],
        more=more,
    )

    async def recover() -> Recovered:
        return found

    assert await Sweep(recover, asked.append, submitted.append).step() is more
    assert (submitted, asked) == ([found.due], [found.questions])
