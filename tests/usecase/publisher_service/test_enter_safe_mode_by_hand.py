"""docs/operations.md: a person has a restored database enter the safe mode, because NATS has lost the marks, too."""

import re
from pathlib import Path

from tests.usecase.publisher_service.replica import Replica
from tests.usecase.publisher_service.restoring import leave, reconcile, scheduled, shown

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"


async def enter_by_hand(replica: Replica) -> None:
    (statement,) = re.findall(r"^insert into safe_mode [^;]+;", OPERATIONS.read_text(), re.MULTILINE)
    await replica.write(statement)


async def test_what_may_be_out_is_looked_up(replica: Replica) -> None:
    await scheduled(replica, 2)
    await enter_by_hand(replica)
    mode, _ = await shown(replica)
    assert (mode.active, mode.reason) == (True, "BY_HAND")
    await reconcile(replica)
    assert await replica.states() == {"UNKNOWN": 2}


async def test_it_can_be_entered_again_after_it_was_left(replica: Replica) -> None:
    for number in (1, 2):
        await enter_by_hand(replica)
        await reconcile(replica)
        assert (await shown(replica))[0].number == number
        await leave(replica)
