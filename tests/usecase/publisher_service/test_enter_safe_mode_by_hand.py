"""docs/operations.md: a person has a restored database enter the safe mode, because NATS has lost the marks, too."""

import re
from datetime import timedelta
from pathlib import Path

from publisher_service.adapters.postgres.safe_modes import enter
from publisher_service.domain.mark import Mark
from publisher_service.domain.safe_mode import SafeModeReason
from tests.usecase.publisher_service.replica import DUE, Replica
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


async def test_an_old_mark_does_not_shorten_the_time_in_question(replica: Replica) -> None:
    """A restored NATS brings it back."""
    await scheduled(replica, 1, due=DUE + timedelta(minutes=2))
    await enter_by_hand(replica)
    old = {"another": Mark(process="another", number=9, time=DUE)}
    async with replica.database.transaction() as tx:
        await enter(tx, SafeModeReason.MARK_AHEAD, old, alive=DUE, now=DUE)
    await reconcile(replica)
    assert await replica.states() == {"UNKNOWN": 1}


async def test_it_can_be_entered_again_after_it_was_left(replica: Replica) -> None:
    for number in (1, 2):
        await enter_by_hand(replica)
        await reconcile(replica)
        assert (await shown(replica))[0].number == number
        await leave(replica)
