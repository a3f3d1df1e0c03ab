"""UpdateDraft while two publishers send: Publisher's own use cases and database, real gRPC in between."""

from __future__ import annotations

import asyncio
import base64
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from nats.aio.client import Client
from sqlalchemy import Row, text

from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.application.give_up_edit import ContentWithdrawer
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_service_pb2_grpc import add_PublisherServiceServicer_to_server
from postflow.target.v1.target_pb2 import Target
from publisher_service.adapters.media.fetcher import MediaFetcher, Pace
from publisher_service.adapters.media.files import MediaFiles
from publisher_service.adapters.media.spool import Room, Spool
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.places import Places
from publisher_service.adapters.vault import Vault
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.explain_post_job import ExplainPostJob
from publisher_service.application.inspect_media import InspectMedia
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.marks import Marks
from publisher_service.application.publish_now import PublishNow
from publisher_service.application.put_hold import PutHold
from publisher_service.application.read_destinations import ReadDestinations
from publisher_service.application.read_holds import ReadHolds
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.retry_post_job import RetryPostJob
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.update_destination import UpdateDestination
from publisher_service.application.validate_content import ValidateContent
from publisher_service.application.watch_post_jobs import WatchPostJobs
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain import post_job
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.media import MediaCaps
from publisher_service.domain.outcome import Accepted
from publisher_service.domain.policy import Policy
from publisher_service.entrypoints.rpc import PublisherServicer
from publisher_service.wire.events import saved_draft_from
from servicekit.bus.feed import Feed
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, fault_from_error
from servicekit.run.settings import Secret
from testkit.database_clocks import ShiftedDatabaseClock

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

DAY = timedelta(days=1)
DUE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FAR = datetime(2126, 3, 2, 9, 0, tzinfo=UTC)


# A feed of no server: nobody watches here.
UNHEARD = Feed(Client(), stream="EVENTS", subjects=(), decode=lambda payload, organizations: (), most=1)


class Press:
    """One publisher process without a provider: claims due jobs, and settles them as published."""

    def __init__(self, url: str) -> None:
        self.database = Database(url, application="test", pool_size=8)
        clock, ids = DatabaseClock(), Uuid7Source()
        steady, outbox = SteadyClock(SystemClock()), Outbox(ids, lambda rows: None)
        policy = Policy(unknown_settle=timedelta(0), lookup_again=timedelta(0))
        self._lanes = [Lane(provider="sandbox", room=1000, lease=timedelta(seconds=30))]
        self._claim = ClaimJobs(database=self.database, clock=clock, steady=steady, outbox=outbox, instance=ids.new())
        self._settle = SettlePosts(
            database=self.database,
            clock=clock,
            ids=ids,
            outbox=outbox,
            policies=lambda name: policy,
            late=LateEvidence(outbox),
            wake_lines=lambda: None,
        )
        self._save = SaveDrafts(outbox, lambda: None)
        ledger = RequestLedger(self.database, clock)
        self.servicer = PublisherServicer(
            cancel=CancelPostJobs(ledger=ledger, outbox=outbox),
            list_destinations=ReadDestinations(self.database),
            explain=ExplainPostJob(
                database=self.database,
                clock=clock,
                vault=Vault([("test", Secret(base64.b64encode(bytes(32)).decode()))]),
                lanes=lambda: self._lanes,
                marks=Marks("test"),
            ),
            inspect_media=InspectMedia(
                database=self.database,
                clock=clock,
                files=MediaFiles(
                    MediaFetcher(
                        Outside(),
                        Places(1, share=1),
                        caps=MediaCaps(image=1, video=1, document=1),
                        pace=Pace(in_all=DAY),
                    ),
                    Spool(Room(1, share=1)),
                ),
                life=timedelta(0),
            ),
            list_holds=ReadHolds(self.database),
            publish_now=PublishNow(ledger=ledger, outbox=outbox, save_drafts=self._save, wake_sweep=lambda: None),
            put_hold=PutHold(ledger=ledger, providers=(), on_changed=lambda: None),
            read=ReadJobs(self.database),
            release_hold=ReleaseHold(ledger=ledger, on_released=lambda: None),
            resolve=ResolvePostJob(ledger=ledger, outbox=outbox),
            retry=RetryPostJob(ledger=ledger, outbox=outbox, wake_sweep=lambda: None),
            update_destination=UpdateDestination(ledger=ledger, on_activated=lambda: None),
            validate=ValidateContent(database=self.database, rules={}),
            channels=(),
            watch=WatchPostJobs(database=self.database, feed=UNHEARD, most_per_organization=1),
            withdraw=WithdrawContent(self.database),
        )

    async def take(self, saved: Sequence[DraftSaved]) -> None:
        drafts = [saved_draft_from(each) for each in saved]
        await self.database.run(lambda tx: self._save(tx, drafts, DUE))

    async def connect(self, names: Sequence[str]) -> None:
        async with self.database.transaction() as tx:
            for name in names:
                await tx.connection.execute(
                    text("""
                        insert into social_account (organization_id, id, provider, external_account_id, display_name,
                            channels, state, credentials, version, create_time, update_time)
                        values ('org', :id, 'sandbox', 'ext', '', '{facebook}', 'CONNECTED', '', 1, now(), now())
                    """),
                    {"id": f"page-{name}"},
                )
                await tx.connection.execute(
                    text(
                        "update account_gate set connected = true, provider = 'sandbox' where social_account_id = :id"
                    ),
                    {"id": f"page-{name}"},
                )

    async def send(self, names: Sequence[str]) -> list[Claimed]:
        answers = await self._claim([_command(name) for name in names], self._lanes)
        return [answer for answer in answers if isinstance(answer, Claimed)]

    async def settle(self, claimed: Sequence[Claimed]) -> None:
        outcome = Accepted(external_id="7", external_url="https://social.example/7")
        await self._settle([Sent(claimed=each, outcome=outcome, time=each.job.update_time) for each in claimed])

    async def rows(self, statement: str) -> list[Row[Any]]:
        async with self.database.statement() as connection:
            return list(await connection.execute(text(statement)))


@dataclass
class Bus:
    """Carries Drafts' announcements to Publisher when a test calls `carry`."""

    drafts: Database
    press: Press
    position: int = 0

    async def carry(self) -> None:
        async with self.drafts.statement() as connection:
            query = text("select position, payload from outbox where position > :position order by position")
            rows = list(await connection.execute(query, {"position": self.position}))
        if rows:
            self.position = rows[-1].position
            events = [event for row in rows for event in Envelope.FromString(row.payload).events]
            await self.press.take([DraftSaved.FromString(event.payload) for event in events])


@pytest.fixture
async def presses(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[tuple[Press, Press]]:
    url = await service_database("publisher")
    presses = Press(url), Press(url)
    yield presses
    for press in presses:
        await press.database.dispose()


@pytest.fixture
async def bus(database: Database, presses: tuple[Press, Press], publisher_port: int) -> AsyncIterator[Bus]:
    server = RpcServer(
        listen=f"127.0.0.1:{publisher_port}",
        servicers=[(add_PublisherServiceServicer_to_server, presses[0].servicer)],
        ids=Uuid7Source(),
    )
    await server.start()
    await server.set_serving(serving=True)
    yield Bus(database, presses[1])
    await server.stop(0)


async def approved(drafts: DraftsServiceAsyncStub, names: Sequence[str]) -> None:
    for name in names:
        draft = Draft(
            content=DraftContent(text="old"), targets=[Target(social_account_id=f"page-{name}", channel="facebook")]
        )
        await drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org", draft_id=name, draft=draft))
        await drafts.ApproveDraft(pb.ApproveDraftRequest(organization_id="org", draft_id=name, approver="ann"))


async def change(drafts: DraftsServiceAsyncStub, name: str, said: str) -> pb.UpdateDraftResponse | str:
    """Returns the response, or the reason of the refusal."""
    request = pb.UpdateDraftRequest(
        organization_id="org",
        draft=Draft(id=name, content=DraftContent(text=said)),
        update_mask=FieldMask(paths=["content.text"]),
        request_id=f"{name}-{said}",
    )
    try:
        return await drafts.UpdateDraft(request)
    except grpc.aio.AioRpcError as error:
        return fault_from_error(error).reason


async def test_the_answer_to_an_edit_is_true_at_any_time(
    drafts: DraftsServiceAsyncStub, presses: tuple[Press, Press], bus: Bus
) -> None:
    """Edits 200 posts around their time: OK with nothing in flight means that no older text ever goes out."""
    names = [f"d{number}" for number in range(200)]
    await approved(drafts, names)
    await bus.carry()
    await presses[0].connect(names)
    answers: dict[str, pb.UpdateDraftResponse | str] = {}

    async def edit(name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.15))
        answers[name] = await change(drafts, name, "new")

    async def publish(press: Press, some: Sequence[str]) -> None:
        await asyncio.sleep(random.uniform(0, 0.1))
        claimed = await press.send(some)
        await asyncio.sleep(random.uniform(0, 0.05))
        await press.settle(claimed)

    for start in range(0, len(names), 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            for name in round_of:
                group.create_task(edit(name))
            for press, half in zip(presses, (round_of[:10], round_of[10:]), strict=True):
                group.create_task(publish(press, half))
        await bus.carry()
        assert not await presses[0].send(round_of)

    out = {
        row.draft_id: row.content_revision
        for row in await presses[0].rows("select * from post_job")
        if row.publish_time
    }
    kinds: Counter[str] = Counter()
    for name, answer in answers.items():
        draft = (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id=name))).draft
        if isinstance(answer, str):
            kinds[answer] += 1
            assert (answer, out.get(name), draft.content.text, draft.approved) == ("DRAFT_PUBLISHED", 1, "old", True)
        else:
            kinds["in flight" if answer.in_flight_post_job_ids else "in time"] += 1
            assert (name in out) == bool(answer.in_flight_post_job_ids)
            assert (draft.content.text, draft.approved) == ("new", False)
    assert set(kinds) == {"DRAFT_PUBLISHED", "in flight", "in time"}, kinds


async def test_a_second_edit_during_a_slow_send_names_its_job_too(
    drafts: DraftsServiceAsyncStub, presses: tuple[Press, Press], bus: Bus
) -> None:
    await approved(drafts, ["d"])
    await bus.carry()
    await presses[0].connect(["d"])
    claimed = await presses[1].send(["d"])
    for said in ("new", "newer"):
        answer = await change(drafts, "d", said)
        assert isinstance(answer, pb.UpdateDraftResponse)
        assert list(answer.in_flight_post_job_ids) == [claimed[0].job.id]
        await bus.carry()
    await presses[1].settle(claimed)
    assert await change(drafts, "d", "newest") == "DRAFT_PUBLISHED"


async def test_an_edit_is_pending_until_publisher_has_the_last_revision(
    drafts: DraftsServiceAsyncStub, bus: Bus
) -> None:
    await approved(drafts, ["d"])
    assert await change(drafts, "d", "new") == "WITHDRAW_PENDING"
    await bus.carry()
    assert isinstance(await change(drafts, "d", "new"), pb.UpdateDraftResponse)


async def test_an_approved_text_goes_out_after_its_edit_was_given_up(
    drafts: DraftsServiceAsyncStub,
    presses: tuple[Press, Press],
    bus: Bus,
    database: Database,
    to_publisher: ContentWithdrawer,
) -> None:
    """The caller dies after Publisher has forbidden the text: the draft is unchanged, and its text is sent."""
    await approved(drafts, ["d"])
    await bus.carry()
    await presses[0].connect(["d"])
    async with database.statement() as connection:
        await connection.execute(text("update draft set withdraw_below = 2, withdraw_due_time = now()"))
    assert await to_publisher.withdraw("org", "d", below=2)
    assert not await presses[1].send(["d"])
    outbox = Outbox(Uuid7Source(), lambda rows: None)
    clock = ShiftedDatabaseClock(timedelta(minutes=1))
    complete = CompleteWithdrawals(database=database, clock=clock, publisher=to_publisher, outbox=outbox)
    assert await complete() is False
    await bus.carry()
    (claimed,) = await presses[1].send(["d"])
    assert DraftContent.FromString(claimed.content).text == "old"


def _command(name: str) -> Command:
    return Command(
        organization_id="org",
        draft_id=name,
        target=post_job.Target(social_account_id=f"page-{name}", channel="facebook"),
        slot_id=f"slot-{name}",
        slot_revision=1,
        emission=1,
        schedule_time=DUE,
        not_after=FAR,
        content_revision=1,
        max_attempts=5,
        traceparent="",
    )
