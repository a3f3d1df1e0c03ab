"""A client of Publisher: whether accounts can post, taking posts back, and holding accounts."""

import logging
from collections.abc import Sequence

import grpc

from postflow.publisher.v1 import (
    hold_pb2,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
    social_account_service_pb2,
    social_account_service_pb2_grpc,
)
from queue_service.domain.account import Connection
from queue_service.domain.hold import Hold, HoldSuperseded
from queue_service.domain.take_back import CancelAnswer, SlotPost
from queue_service.wire import take_backs as wire
from queue_service.wire.connections import shown_connection
from servicekit.faults import Code, Fault, Refused, Unavailable
from servicekit.rpc import calling

_SHORT_TIMEOUT = 1.0
"""The timeout in seconds: a slot can be given without the answer."""
_TIMEOUT = 4.0
"""The timeout in seconds of calls that must be answered, of which a caller may need two within its own ten."""

_log = logging.getLogger(__name__)


class PublisherClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._accounts = social_account_service_pb2_grpc.SocialAccountServiceStub(channel)
        self._posts = publisher_service_pb2_grpc.PublisherServiceStub(channel)

    async def is_connected(self, organization_id: str, social_account_id: str) -> bool:
        """Raises NotFound for an unknown account. Returns True if Publisher runs the release that lacks the RPC."""
        found = await self.find_connection(organization_id, social_account_id)
        return found is None or found.is_connected

    async def find_connection(self, organization_id: str, social_account_id: str) -> Connection | None:
        """Raises NotFound for an unknown account. Returns None if Publisher runs the release that lacks the RPC."""
        request = social_account_service_pb2.GetAccountRequest(
            organization_id=organization_id, social_account_id=social_account_id
        )
        try:
            with calling():
                found = await self._accounts.GetAccount(request, timeout=_SHORT_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise
        return shown_connection(organization_id, found.social_account)

    async def cancel_posts(self, organization_id: str, posts: Sequence[SlotPost]) -> list[CancelAnswer]:
        """Takes back up to 500 posts that have not started; raises Unavailable unless each has an answer."""
        request = wire.cancel_posts_request(organization_id, posts)
        try:
            with calling():
                response = await self._posts.CancelPostJobs(request, timeout=_TIMEOUT)
            answers = [wire.cancel_answer(post, result) for post, result in zip(posts, response.results, strict=False)]
        except (Fault, grpc.aio.AioRpcError) as error:
            raise _unanswered("CancelPostJobs", "TAKE_BACK_PENDING", error) from error
        known = [answer for answer in answers if answer is not None]
        if len(known) < len(posts):
            _log.error("publisher has answered for %d of %d posts that were to be taken back", len(known), len(posts))
            raise Unavailable("TAKE_BACK_PENDING", "publisher has not answered for all posts")
        return known

    async def put_hold(self, hold: Hold) -> tuple[str, ...]:
        """Keeps posts of an account from starting. Returns the jobs that are being sent or may be out.

        Raises HoldSuperseded if Publisher knows a newer revision.
        """
        request = publisher_service_pb2.PutHoldRequest(
            organization_id=hold.organization_id,
            hold_id=hold.id,
            scope=hold_pb2.HOLD_SCOPE_ACCOUNT,
            scope_id=hold.social_account_id,
            revision=hold.revision,
            # Publisher wants one, and who pauses a queue need not give any.
            reason=hold.reason or "the queue is paused",
            holder=hold.holder,
        )
        try:
            with calling():
                response = await self._posts.PutHold(request, timeout=_TIMEOUT)
        except (Fault, grpc.aio.AioRpcError) as error:
            raise _superseded(error, hold) or _unanswered("PutHold", "HOLD_PENDING", error) from error
        return tuple(response.in_flight_post_job_ids)

    async def release_hold(self, hold: Hold) -> None:
        """Lets the posts of an account start again. Raises HoldSuperseded if Publisher knows a newer revision."""
        request = publisher_service_pb2.ReleaseHoldRequest(
            organization_id=hold.organization_id, hold_id=hold.id, revision=hold.revision
        )
        try:
            with calling():
                await self._posts.ReleaseHold(request, timeout=_TIMEOUT)
        except (Fault, grpc.aio.AioRpcError) as error:
            raise _superseded(error, hold) or _unanswered("ReleaseHold", "HOLD_PENDING", error) from error


def _superseded(error: Exception, hold: Hold) -> HoldSuperseded | None:
    if not (isinstance(error, Refused) and error.reason == "HOLD_SUPERSEDED"):
        return None
    return HoldSuperseded(int(error.metadata.get("revision", hold.revision)))


_UNANSWERED = {
    "CancelPostJobs": "publisher has not answered which posts it gives back; repeat the request",
    "PutHold": "the queue is paused, but publisher has not answered: posts that were handed over may still start; "
    "repeat the request",
    "ReleaseHold": "the queue is resumed, but publisher has not answered, so that it does not post yet; "
    "repeat the request",
}


def _unanswered(method: str, reason: str, error: Exception) -> Unavailable:
    """Returns what the caller may rely on: nothing. The previous release of Publisher lacks these methods."""
    if not _is_transient(error):
        _log.error("publisher refused %s", method, exc_info=error)
    retry_after = error.retry_after if isinstance(error, Fault) else None
    return Unavailable(reason, _UNANSWERED[method], retry_after=retry_after)


def _is_transient(error: Exception) -> bool:
    if isinstance(error, grpc.aio.AioRpcError):
        return error.code() is grpc.StatusCode.UNIMPLEMENTED
    return isinstance(error, Fault) and error.code in {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED}
