"""Publisher's database is restored from an older copy: nothing goes out twice, and nothing is lost without a word."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count

import asyncpg
import grpc
import pytest

from devstack.servers.postgres import ROLE_PREFIX
from devstack.stack import Stack
from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from postflow.publisher.v1.publisher_admin_service_pb2_grpc import PublisherAdminServiceStub
from publisher_service.application.keep_marks import ALIVE
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.history import History
from testkit.stack.mixed_run import QUICK
from testkit.stack.posting import Posting
from testkit.stack.tenant import Clients

PUBLISHERS = ("publisher", "publisher-2")
COPY = "copy_of_publisher"
WAITING = [f"waiting-{number}" for number in range(30)]
SCHEDULED = [f"scheduled-{number}" for number in range(30)]
AFTER = [f"after-{number}" for number in range(15)]
ON_LOST_ACCOUNTS = [f"lost-{number}" for number in range(15)]
LATER = [f"later-{number}" for number in range(10)]
BLIND = [f"blind-{number}" for number in range(5)]
OUT = [*WAITING, *SCHEDULED, *BLIND]

_numbers = count(1)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("restored") / "state"
    async with Stack(folder, environment=QUICK, replicas={"publisher": 2}, respawn=False) as running:
        yield running


async def copy(stack: Stack) -> None:
    assert stack.postgres is not None
    await stop(stack)
    await stack.postgres.drop_database(COPY)
    await stack.postgres.create_database(COPY, template="publisher")
    await start(stack)


async def restore(stack: Stack) -> None:
    assert stack.postgres is not None
    await stack.postgres.drop_database("publisher")
    await stack.postgres.create_database("publisher", template=COPY, owner=f"{ROLE_PREFIX}publisher")


async def stop(stack: Stack) -> None:
    for publisher in PUBLISHERS:
        await stack.stop(publisher)


async def start(stack: Stack) -> None:
    for publisher in PUBLISHERS:
        await stack.start(publisher)


async def wipe_nats(stack: Stack) -> None:
    """Loses all events, commands and marks."""
    assert stack.nats is not None
    await stack.nats.kill()
    await stack.nats.wipe()
    await stack.nats.start()


async def outlast(stack: Stack) -> None:
    """Waits until the database, which is stopped, is older than a restart takes."""
    connection = await asyncpg.connect(stack.database_urls["publisher"])
    try:
        age = await connection.fetchval("select extract(epoch from now() - max(time)) from claim_mark")
    finally:
        await connection.close()
    await asyncio.sleep(max(ALIVE.total_seconds() + 1 - float(age), 0))


async def until(posting: Posting, states: dict[str, str], *, within: float = 60.0) -> History:
    """Waits until the jobs of these drafts have these states."""

    async def reached() -> History:
        read = await posting.history()
        found = {job["draft_id"]: job["state"] for job in read.jobs if job["draft_id"] in states}
        different = {draft: (found.get(draft), state) for draft, state in states.items() if found.get(draft) != state}
        assert not different, different
        return read

    return await eventually(reached, within=within)


async def safe_mode(clients: Clients) -> pb.SafeMode:
    admin = PublisherAdminServiceStub(clients.channels["publisher"])
    return (await admin.GetSafeMode(pb.GetSafeModeRequest())).safe_mode


async def leave(clients: Clients, *, within: float = 60.0) -> pb.SafeMode:
    """Leaves the safe mode as soon as nothing is open."""
    admin = PublisherAdminServiceStub(clients.channels["publisher"])
    number = next(_numbers)

    async def left() -> bool:
        try:
            await admin.LeaveSafeMode(pb.LeaveSafeModeRequest(operator="ann", request_id=f"leave-{number}"))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            return False
        return True

    await eventually(left, within=within)
    return await safe_mode(clients)


def doubled(posting: Posting) -> dict[str, int]:
    counted = Counter(str(effect["text"]) for effect in posting.effects())
    return {text: number for text, number in counted.items() if number > 1}


async def live_on(posting: Posting, clients: Clients) -> None:
    """Makes a copy with posts in every state, and publishes on after it."""
    stack, tenant = posting.stack, posting.tenant
    for draft in OUT:
        await stack.sandbox.mode(tenant.external(f"of-{draft}"), "blind" if draft in BLIND else "lookup")
    for draft in AFTER:
        await tenant.connect(f"of-{draft}")
    limited = [tenant.external(f"of-{draft}") for draft in [*WAITING, *BLIND]]
    await stack.sandbox.faults(
        *({"fault": "status", "status": 429, "account": each, "retry_after": 8} for each in limited)
    )
    await posting.schedule(*WAITING, *BLIND)
    await until(posting, dict.fromkeys([*WAITING, *BLIND], "WAITING"))
    await posting.prepare(*SCHEDULED, *LATER)
    now = SystemClock().now()
    await posting.schedule_each(
        dict.fromkeys(SCHEDULED, now + timedelta(seconds=15)) | dict.fromkeys(LATER, now + timedelta(seconds=90))
    )
    await until(posting, dict.fromkeys([*SCHEDULED, *LATER], "SCHEDULED"))
    await copy(stack)
    await clients.ready()
    await stack.sandbox.clear_faults()
    await posting.prepare(*AFTER, *ON_LOST_ACCOUNTS)
    due = SystemClock().now() + timedelta(seconds=75)
    await posting.schedule_each(dict.fromkeys([*AFTER, *ON_LOST_ACCOUNTS], due))
    await until(posting, dict.fromkeys(OUT, "PUBLISHED"))


@pytest.mark.parametrize("nats", ["kept", "wiped"])
async def test_nothing_doubles_and_nothing_is_lost_after_a_restore(
    stack: Stack, posting: Posting, clients: Clients, nats: str
) -> None:
    await live_on(posting, clients)
    await stop(stack)
    await restore(stack)
    if nats == "wiped":
        await wipe_nats(stack)
        await outlast(stack)
    await start(stack)
    await clients.ready()
    found = await safe_mode(clients)
    assert (found.active, found.reason) == (True, "MARKS_LOST" if nats == "wiped" else "MARK_AHEAD")
    # Retries that the copy shows as due for long would be out by now.
    left = await leave(clients, within=120)
    assert not doubled(posting)
    assert left.summary.published + left.summary.needs_attention >= len(OUT)

    in_question = dict.fromkeys(BLIND, "NEEDS_ATTENTION" if nats == "wiped" else "PUBLISHED")
    certain = dict.fromkeys([*WAITING, *SCHEDULED, *LATER, *AFTER], "PUBLISHED")
    await until(posting, certain | in_question | dict.fromkeys(ON_LOST_ACCOUNTS, "BLOCKED"), within=150)
    lost = {job["id"] for job in (await posting.history()).jobs if job["draft_id"] in ON_LOST_ACCOUNTS}
    read = await posting.check(unanswerable=lost)
    assert not doubled(posting)
    assert len(posting.effects()) == len([*OUT, *LATER, *AFTER])
    reasons = {job["state_reason"] for job in read.jobs if job["draft_id"] in ON_LOST_ACCOUNTS}
    assert reasons == {"ACCOUNT_NOT_CONNECTED"}
