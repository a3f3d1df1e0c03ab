"""Events that wake the pipeline, and whether lines may have their turn."""

from publisher_service.engine.wake_up import WakeUp


async def test_lines_are_looked_at_once_at_the_start() -> None:
    wake_up = WakeUp()
    assert wake_up.has_lines
    assert [wake_up.take_lines(), wake_up.take_lines()] == [True, False]


async def test_a_due_command_wakes_the_pipeline_but_no_line() -> None:
    wake_up = WakeUp()
    wake_up.take_lines()
    wake_up.wake()
    await wake_up.wait(3600)
    assert not wake_up.has_lines


async def test_a_line_with_its_turn_is_remembered_until_it_is_taken() -> None:
    wake_up = WakeUp()
    wake_up.take_lines()
    wake_up.wake_lines()
    wake_up.clear()
    assert wake_up.take_lines()
