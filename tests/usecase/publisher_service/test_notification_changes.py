"""Calls that change notifications are carried out once, also if the process dies before it has answered."""

from collections.abc import Iterator

import pytest

from publisher_service.domain.delivery import Trial
from servicekit import failpoints
from testkit.calls import call
from tests.usecase.publisher_service.notified import Notified


@pytest.fixture(autouse=True)
def healthy() -> Iterator[None]:
    """Disarms the failpoint for the tests that follow."""
    yield
    failpoints.install("", "test")


async def test_a_call_that_was_not_answered_is_answered_by_its_repeat(notified: Notified) -> None:
    await notified.subscribe()
    asked = call("SendTestNotification", request_id="r1")
    failpoints.install("publisher.change_notifications.committed=raise:once", "test")
    with pytest.raises(failpoints.FailpointHit):
        await notified.send_test(asked, Trial(subscription_id="w1"))
    failpoints.install("", "test")
    answer = await notified.send_test(asked, Trial(subscription_id="w1"))
    assert await notified.deliveries() == [answer]
