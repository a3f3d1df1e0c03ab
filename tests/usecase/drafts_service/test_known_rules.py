"""The rules of channels are asked for once, and kept while Publisher is down."""

import asyncio
from datetime import timedelta

from channels.rules import ChannelRules, TextRule
from drafts_service.application.known_rules import KnownRules
from drafts_service.domain.channel_rules import Rules
from servicekit.faults import Unavailable
from testkit.clocks import FrozenClock

RULES: Rules = {"sandbox": {"facebook": ChannelRules(text=TextRule(most=5))}}


class Source:
    def __init__(self, *answers: Rules | None) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def rules(self) -> Rules:
        self.asked += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if answer is None:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "unreachable")
        return answer


async def test_callers_that_come_together_ask_once() -> None:
    source = Source(RULES)
    known = KnownRules(source, FrozenClock())
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(known()) for _ in range(5)]
    assert [each.result() for each in asked] == [RULES] * 5
    assert source.asked == 1


async def test_an_absent_publisher_is_not_asked_again_at_once() -> None:
    source, clock = Source(None, RULES), FrozenClock()
    known = KnownRules(source, clock)
    assert [await known() for _ in range(3)] == [None] * 3
    assert source.asked == 1
    clock.advance(timedelta(seconds=6))
    assert await known() == RULES


async def test_old_rules_stay_while_publisher_is_away() -> None:
    known = KnownRules(Source(RULES, None), FrozenClock())
    await known()
    await known.refresh()
    assert await known() == RULES
