"""InspectMedia: what media is, and why it cannot be used, without a word of the secrets in its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postflow.drafts.v1 import draft_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from testkit.refusals import fields_at_fault, refusal_of
from tests.contract.publisher_service.media_rig import CANARY
from tests.unit.publisher_service.media_samples import FILM, picture

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub
    from tests.contract.publisher_service.media_rig import MediaRig


async def inspected(publisher: PublisherServiceAsyncStub, *urls: str) -> list[pb.InspectedMedia]:
    answer = await publisher.InspectMedia(pb.InspectMediaRequest(organization_id="acme", urls=urls))
    return list(answer.media)


async def test_facts_are_those_of_the_bytes(publisher: PublisherServiceAsyncStub, rig: MediaRig) -> None:
    photo, film = rig.serve("a", picture("image/jpeg")), rig.serve("b", FILM)
    one, two = await inspected(publisher, photo, film)
    assert (one.url, one.facts.kind, one.facts.content_type) == (photo, draft_pb2.MEDIA_KIND_IMAGE, "image/jpeg")
    assert (one.facts.size, len(one.facts.sha256)) == (len(picture("image/jpeg")), 64)
    assert (two.facts.kind, two.facts.HasField("duration")) == (draft_pb2.MEDIA_KIND_VIDEO, True)


async def test_a_problem_is_shown_without_the_query(publisher: PublisherServiceAsyncStub, rig: MediaRig) -> None:
    gone = rig.serve("gone", b"", status="404 Not Found")
    page = rig.serve("page", b"<html></html>")
    for found in await inspected(publisher, gone, page):
        assert (found.HasField("facts"), found.may_pass) == (False, False)
        assert found.problem_reason.startswith("MEDIA_")
        assert CANARY not in found.problem_message


async def test_a_private_address_is_refused_without_a_request(
    publisher: PublisherServiceAsyncStub, rig: MediaRig
) -> None:
    (found,) = await inspected(publisher, "https://169.254.169.254/latest/meta-data")
    assert found.problem_reason.startswith("URL_")
    assert rig.server.requests == []


async def test_a_question_without_addresses_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    _, refusal = await refusal_of(publisher.InspectMedia(pb.InspectMediaRequest(organization_id="acme")))
    assert fields_at_fault(refusal) == ["urls"]
