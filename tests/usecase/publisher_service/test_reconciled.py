"""Calls whose answer rests on what is out are refused until that is known."""

from dataclasses import replace
from datetime import timedelta

import pytest

from servicekit.faults import Unavailable
from tests.usecase.publisher_service.replica import FAR, Replica, a_command, a_slot_post
from tests.usecase.publisher_service.restoring import reconcile, restored, scheduled


async def test_a_post_that_may_be_out_is_never_said_to_be_taken_back(replica: Replica) -> None:
    (name,) = await scheduled(replica, 1)
    await restored(replica)
    with pytest.raises(Unavailable) as refused:
        await replica.take_back(a_slot_post(name))
    assert refused.value.reason == "RECONCILING"
    await reconcile(replica)
    (answer,) = await replica.take_back(a_slot_post(name))
    assert answer.outcome == "TOO_LATE"


async def test_a_post_that_the_copy_lacks_is_never_said_to_be_taken_back(replica: Replica) -> None:
    """Queue alone knows it. Its next command says when it was due."""
    await restored(replica)
    await reconcile(replica)
    with pytest.raises(Unavailable) as refused:
        await replica.take_back(a_slot_post("lost"))
    assert refused.value.reason == "RECONCILING"
    assert await replica.states() == {}
    for _ in range(2):
        await replica.claim([a_command("lost")])
    (answer,) = await replica.take_back(a_slot_post("lost"))
    assert answer.outcome == "TOO_LATE"


async def test_a_slot_that_the_copy_lacks_is_never_said_to_be_taken_back(replica: Replica) -> None:
    """The slot was moved to an earlier time after the copy, and its post may be out."""
    (name,) = await scheduled(replica, 1, due=FAR - timedelta(days=1))
    await restored(replica)
    await reconcile(replica)
    (known,) = await replica.take_back(a_slot_post(name))
    assert known.outcome == "CANCELED"
    with pytest.raises(Unavailable):
        await replica.take_back(a_slot_post(name, revision=2))
    await replica.claim([replace(a_command(name), slot_revision=2, emission=2)])
    (answer,) = await replica.take_back(a_slot_post(name, revision=2))
    assert answer.outcome == "TOO_LATE"


async def test_a_text_that_may_be_out_is_never_said_to_be_withdrawn(replica: Replica) -> None:
    (name,) = await scheduled(replica, 1)
    await restored(replica)
    with pytest.raises(Unavailable):
        await replica.withdraw("acme", name, 2)
    await reconcile(replica)
    withdrawal = await replica.withdraw("acme", name, 2)
    assert len(withdrawal.in_flight) == 1
