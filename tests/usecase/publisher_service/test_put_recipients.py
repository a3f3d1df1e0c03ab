"""PutRecipients replaces a list, once for each request, and only the one that the caller has read."""

import asyncio
from dataclasses import replace

from publisher_service.domain.recipients import RecipientList
from testkit.calls import call
from testkit.refusals import fault_of
from tests.usecase.publisher_service.notified import Notified


async def put(notified: Notified, wanted: RecipientList, *, etag: str = "", request_id: str = "") -> RecipientList:
    stored: RecipientList = await notified.put_recipients(call("PutRecipients", request_id=request_id), wanted, etag)
    return stored


async def test_a_list_is_replaced(notified: Notified) -> None:
    first = await notified.recipients("ann", "bob")
    second = await notified.recipients("carl")
    assert (first.etag, second.etag) == ("1", "2")
    assert await notified.read.recipients("acme", "") == second
    assert second.update_time == notified.clock.moment


async def test_a_stale_etag_changes_nothing(notified: Notified) -> None:
    first = await notified.recipients("ann")
    second = await put(notified, replace(first, name="new"), etag=first.etag)
    refused = await fault_of(put(notified, replace(first, name="newer"), etag=first.etag))
    assert (refused.reason, refused.metadata["etag"]) == ("ETAG_MISMATCH", second.etag)
    assert (await fault_of(put(notified, replace(first, brand_id="shop"), etag="1"))).reason == "ETAG_MISMATCH"


async def test_a_repeat_changes_nothing(notified: Notified) -> None:
    first = await put(notified, await notified.recipients("ann"), request_id="r1")
    await notified.recipients("bob")
    assert await put(notified, first, request_id="r1") == first
    assert [each.name for each in (await notified.read.recipients("acme", "")).recipients] == ["bob"]


async def test_concurrent_first_puts_are_both_stored(notified: Notified) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(notified.recipients(f"p{number}"))
    assert (await notified.read.recipients("acme", "")).version == 4
