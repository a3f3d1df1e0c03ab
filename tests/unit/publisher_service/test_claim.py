"""Commands: from the stream, and from the job itself."""

from dataclasses import replace

from publisher_service.domain.claim import command_of
from publisher_service.domain.post_job import JobState, job_id
from tests.unit.publisher_service.post_jobs import LATER, NOW, PAGE, command, sending


def test_a_command_names_the_job_of_its_target() -> None:
    assert command("slot-1").post_job_id == job_id("acme", "draft", PAGE)
    other = replace(command("slot-1"), target=replace(PAGE, destination="chat"))
    assert other.post_job_id != command("slot-1").post_job_id


def test_the_command_of_a_job_repeats_its_slot_and_revision() -> None:
    job = replace(sending(JobState.READY), slot_sequence=7, slot_revision=2, wanted_revision=3, max_attempts=4)
    repeated = command_of(job)
    assert (repeated.slot_id, repeated.slot_sequence, repeated.slot_revision) == ("slot-1", 7, 2)
    assert (repeated.schedule_time, repeated.not_after) == (NOW, LATER)
    assert (repeated.content_revision, repeated.max_attempts) == (3, 4)


def test_nobody_waits_for_the_answer_to_the_command_of_a_job() -> None:
    """Queue counts its commands from 1."""
    assert command_of(sending(JobState.READY)).emission == 0
