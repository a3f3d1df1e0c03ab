"""The sweep: finds jobs that stand still, and moves them on."""

from collections.abc import Awaitable, Callable, Sequence

from publisher_service.application.recover_jobs import Question, Recovered
from publisher_service.domain.claim import Command


class Sweep:
    """Recovers jobs that stand still: hands the due ones to the pipeline, and the unknown ones to the look-ups."""

    def __init__(
        self,
        recover: Callable[[], Awaitable[Recovered]],
        look_up: Callable[[Sequence[Question]], None],
        hand_on: Callable[[Sequence[Command]], None],
    ) -> None:
        self._recover = recover
        self._look_up = look_up
        self._hand_on = hand_on

    async def step(self) -> bool:
        found = await self._recover()
        self._hand_on(found.due)
        self._look_up(found.questions)
        return found.more
