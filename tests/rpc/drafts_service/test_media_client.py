"""Questions of Drafts about media: as many as Publisher takes at a time, no matter how many the draft has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from drafts_service.domain.content import MediaFacts
from postflow.drafts.v1 import draft_pb2
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.publisher.v1.publisher_service_pb2 import InspectedMedia, InspectMediaRequest, InspectMediaResponse
from postflow.publisher.v1.publisher_service_pb2_grpc import (
    PublisherServiceServicer,
    add_PublisherServiceServicer_to_server,
)
from postflow.target.v1.target_pb2 import Target
from servicekit.faults import Refused, Unavailable
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer

if TYPE_CHECKING:
    from drafts_service.adapters.publisher_client import MediaClient
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

FACTS = draft_pb2.MediaFacts(sha256="a" * 64, kind=draft_pb2.MEDIA_KIND_IMAGE, content_type="image/jpeg", size=5)
URLS = [f"https://x.example/{number}.jpg" for number in range(110)]


class FakePublisher(PublisherServiceServicer):
    """Knows all media; never answers for what is `slow`, and fails with `trouble`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.most_at_once = 0
        self.slow = ""
        self.trouble: Exception | None = None
        self._at_once = 0

    async def InspectMedia(self, request: InspectMediaRequest, context: Any) -> InspectMediaResponse:
        self.asked.append(list(request.urls))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0.01)
        self._at_once -= 1
        if self.slow in request.urls:
            await asyncio.Event().wait()
        if self.trouble:
            raise self.trouble
        return InspectMediaResponse(media=[InspectedMedia(url=url, facts=FACTS) for url in request.urls])


@pytest.fixture
async def publisher(publisher_port: int) -> AsyncIterator[FakePublisher]:
    fake = FakePublisher()  # type: ignore[abstract]  # serves what is asked here
    server = RpcServer(
        listen=f"127.0.0.1:{publisher_port}",
        servicers=[(add_PublisherServiceServicer_to_server, fake)],
        ids=Uuid7Source(),
    )
    await server.start()
    await server.set_serving(serving=True)
    yield fake
    await server.stop(0)


async def test_any_number_of_media_is_inspected_twenty_at_a_time(publisher: FakePublisher, media: MediaClient) -> None:
    found = await media.inspect("acme", URLS)
    assert list(found) == URLS
    assert isinstance(found[URLS[-1]], MediaFacts)
    assert sorted(map(len, publisher.asked)) == [10, 20, 20, 20, 20, 20]
    assert 1 < publisher.most_at_once <= 4


async def test_what_is_not_answered_in_time_is_left_out(publisher: FakePublisher, media: MediaClient) -> None:
    publisher.slow = URLS[25]
    assert sorted(await media.inspect("acme", URLS[:60])) == sorted([*URLS[:20], *URLS[40:60]])


async def test_of_a_publisher_that_is_away_nothing_is_learned(media: MediaClient) -> None:
    assert await media.inspect("acme", URLS[:2]) == {}


@pytest.mark.parametrize(
    "trouble", [Unavailable("DOWNSTREAM_UNAVAILABLE", "later"), RuntimeError("a defect")], ids=["away", "broken"]
)
async def test_what_may_pass_leaves_media_unknown(
    publisher: FakePublisher, media: MediaClient, trouble: Exception
) -> None:
    publisher.trouble = trouble
    assert await media.inspect("acme", URLS) == {}


async def test_a_refusal_does_not_look_as_if_publisher_were_away(publisher: FakePublisher, media: MediaClient) -> None:
    publisher.trouble = Refused("NOT_ALLOWED", "never")
    with pytest.raises(ExceptionGroup) as refused:
        await media.inspect("acme", URLS)
    assert {str(each) for each in refused.value.exceptions} == {"publisher refused to inspect media"}


async def test_a_draft_with_as_many_media_as_it_may_have_is_approved(
    publisher: FakePublisher, drafts: DraftsServiceAsyncStub
) -> None:
    content = draft_pb2.DraftContent(media=[draft_pb2.Media(url=url) for url in URLS[:20]])
    content.channel_media.add(channel="facebook", media=[draft_pb2.Media(url=url) for url in URLS[20:40]])
    targets = [Target(social_account_id="page", channel="facebook")]
    draft = draft_pb2.Draft(content=content, targets=targets)
    created = await drafts.CreateDraft(pb.CreateDraftRequest(organization_id="acme", draft=draft))
    answer = await drafts.ApproveDraft(
        pb.ApproveDraftRequest(organization_id="acme", draft_id=created.draft.id, approver="ann")
    )
    assert answer.draft.content.channel_media[0].media[-1].facts.sha256 == FACTS.sha256
    assert answer.draft.approved
