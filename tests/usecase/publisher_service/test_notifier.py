"""Receivers are served side by side: one that hangs delays no other, least of all another organization's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

import pytest

from publisher_service.adapters.postgres.notification_lines import Room
from publisher_service.engine.notifier import Notifier
from testkit.eventually import eventually
from testkit.smtp_server import At
from testkit.webhook_receiver import WebhookReceiver
from tests.usecase.publisher_service.notified import Notified, failed

Running = Callable[..., AbstractAsyncContextManager[asyncio.Event]]


@pytest.fixture
def running(notified: Notified) -> Running:
    @asynccontextmanager
    async def run(*, mail: bool = False) -> AsyncIterator[asyncio.Event]:
        """Runs a notifier, and yields the event that says that something is due."""
        due, stop = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(Notifier("test", notified.send, due, mail=mail).run(stop))
            yield due
            stop.set()

    return run


async def test_a_webhook_that_hangs_delays_no_other_organization(notified: Notified, running: Running) -> None:
    notified.receiver.awake.clear()
    for number in range(20):
        await notified.subscribe(f"w{number}")
    await notified.record(*(failed(f"j{number}") for number in range(10)))
    async with WebhookReceiver() as other, running() as due:
        notified.webhooks._outside._private_hosts = frozenset({notified.receiver.place, other.place})
        await eventually(lambda: len(notified.receiver.posted) == 4)
        await notified.subscribe(organization="other", url=other.url)
        await notified.record(*(failed(f"j{number}", organization="other") for number in range(30)))
        due.set()
        await eventually(lambda: len(other.posted) == 30)
        assert len(notified.receiver.posted) == 4
        notified.receiver.awake.set()
        await eventually(lambda: len(notified.receiver.posted) == 200)


async def test_a_hanging_mail_server_delays_no_webhook(notified: Notified, running: Running) -> None:
    await notified.recipients("ann")
    await notified.subscribe()
    notified.smtp.fail(At.MAIL, hang=True)
    async with running(mail=True) as mail_due, running() as due:
        await notified.record(failed("j1"), failed("j2"))
        mail_due.set()
        due.set()
        await eventually(lambda: len(notified.receiver.posted) == 2)
        assert not notified.smtp.kept


async def test_receivers_that_answer_slowly_take_no_place_of_others(notified: Notified) -> None:
    for number in range(6):
        await notified.subscribe(f"w{number}", organization=f"org-{number}")
    await notified.record(*(failed(organization=f"org-{number}") for number in range(6)))
    await notified.write("update notification_line set slow = true where organization_id < 'org-4'")
    turns = await notified.send.take(Room(mail=False, quick=9, slow=1, most=4))
    assert sorted(turn.line.slow for turn in turns) == [False, False, True]
    assert len(await notified.send.take(Room(mail=False, quick=9, slow=0, most=4))) == 0
    assert len(await notified.send.take(Room(mail=False, quick=0, slow=9, most=4, busy=("org-1",)))) == 2


async def test_all_lines_are_served_in_the_end(notified: Notified, running: Running) -> None:
    for organization in ("acme", "other", "third"):
        await notified.recipients("ann", "bob", organization=organization)
    await notified.record(
        *(failed(f"j{number}", organization=each) for number in range(15) for each in ("acme", "other", "third"))
    )
    async with running(mail=True):
        await eventually(lambda: len(notified.smtp.kept) == 90)
    assert len({kept.message["Message-ID"] for kept in notified.smtp.kept}) == 90


async def test_a_database_that_was_lost_ends_nothing(notified: Notified, running: Running) -> None:
    await notified.subscribe()
    await notified.record(failed())
    async with running() as due:
        notified.receiver.awake.clear()
        await eventually(lambda: len(notified.receiver.posted) == 1)
        notified.database.drop_connections()
        notified.receiver.awake.set()
        due.set()
        notified.pass_time(timedelta(minutes=2))

        async def sent() -> bool:
            due.set()
            return await notified.states() == ["DELIVERED"]

        await eventually(sent)
    assert len(set(notified.receiver.ids)) == 1
