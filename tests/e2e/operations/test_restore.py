"""docs/operations.md: a database that is restored from a backup hears again of what happened since."""

import io
import subprocess
from datetime import timedelta
from pathlib import Path

from nats.aio.client import Client

from devstack.commands.demo import DRAFT, ORGANIZATION, Demo
from devstack.commands.render import Printer
from devstack.servers.binaries import postgres_client
from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DraftState
from postflow.drafts.v1.drafts_service_pb2 import GetDraftRequest
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceStub
from servicekit.bus.connection import close, connect
from servicekit.clock import SystemClock
from servicekit.rpc import open_channel
from testkit.eventually import eventually


async def test_a_restored_database_catches_up_when_its_durable_is_removed(tmp_path: Path) -> None:
    async with Stack(tmp_path / "state") as stack:
        demo = Demo(stack, SystemClock(), Printer(io.StringIO(), str))
        due = await demo.send(timedelta(seconds=3))
        url, backup = stack.database_urls["drafts"], tmp_path / "backup"
        _run("pg_dump", "-Fc", "-f", str(backup), url)
        assert await demo.watch(due, timedelta(seconds=60))
        await demo.close()

        await stack.stop("drafts")
        _run("pg_restore", "--clean", "--if-exists", "--no-owner", "-d", url, str(backup))
        await _remove_durable(stack.nats_url, "drafts-events")
        await stack.start("drafts")
        await eventually(lambda: _is_published(stack), within=60)


def _run(program: str, *arguments: str) -> None:
    client = postgres_client(program)
    assert client is not None
    subprocess.run([client, *arguments], check=True)


async def _remove_durable(url: str, durable: str) -> None:
    client = Client()
    await connect(client, url, name="test")
    await client.jetstream().delete_consumer("EVENTS", durable)
    await close(client)


async def _is_published(stack: Stack) -> bool:
    async with open_channel(stack.targets["drafts"]) as channel:
        request = GetDraftRequest(organization_id=ORGANIZATION, draft_id=DRAFT)
        answer = await DraftsServiceStub(channel).GetDraft(request)
    return answer.draft.state == DraftState.DRAFT_STATE_PUBLISHED
