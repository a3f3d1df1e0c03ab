"""One question about the stream serves all watchers of a process."""

import asyncio

from queue_service.application.shared_hearing import SharedHearing
from queue_service.domain.stream import Hearing


class Events:
    def __init__(self, *answers: Hearing | None) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def hearing(self) -> Hearing | None:
        self.asked += 1
        await asyncio.sleep(0)
        return self._answers.pop(0)


async def test_watchers_that_ask_together_share_an_answer() -> None:
    events = Events(Hearing(9, 7))
    hearing = SharedHearing(events, period=60)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(hearing.heard()) for _ in range(5)]
    assert [each.result() for each in asked] == [7] * 5
    assert events.asked == 1


async def test_an_old_answer_is_replaced() -> None:
    hearing = SharedHearing(Events(Hearing(9, 7), Hearing(9, 9)), period=0)
    assert [await hearing.heard(), await hearing.heard()] == [7, 9]


async def test_nothing_counts_as_heard_while_the_stream_is_unreachable() -> None:
    hearing = SharedHearing(Events(Hearing(9, 7), None), period=0)
    assert [await hearing.heard(), await hearing.heard()] == [7, 0]
