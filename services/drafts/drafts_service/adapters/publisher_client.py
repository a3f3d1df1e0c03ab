"""Calls to Publisher over gRPC."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import grpc

from drafts_service.domain.account import Account
from drafts_service.domain.channel_rules import Rules
from drafts_service.domain.media import Inspected
from drafts_service.domain.withdrawal import WithdrawalAnswer
from drafts_service.wire import contents, events, rules
from postflow.publisher.v1.publisher_service_pb2 import (
    WITHDRAW_OUTCOME_PUBLISHED,
    WITHDRAW_OUTCOME_TOO_LATE,
    WITHDRAW_OUTCOME_WITHDRAWN,
    InspectMediaRequest,
    ListChannelsRequest,
    WithdrawContentRequest,
    WithdrawContentResponse,
)
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceStub
from postflow.publisher.v1.social_account_service_pb2 import GetAccountRequest
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceStub
from servicekit.faults import Fault, NotFound, Refused, Unavailable
from servicekit.rpc import calling

_OUTCOMES = {WITHDRAW_OUTCOME_WITHDRAWN, WITHDRAW_OUTCOME_TOO_LATE, WITHDRAW_OUTCOME_PUBLISHED}

# The most addresses that Publisher takes in one question, and the most questions about one draft in flight.
_MOST_MEDIA = 20
_QUESTIONS_AT_ONCE = 4

_log = logging.getLogger(__name__)


class AccountClient:
    def __init__(self, channel: grpc.aio.Channel, *, deadline: timedelta) -> None:
        self._stub = SocialAccountServiceStub(channel)
        self._deadline = deadline.total_seconds()

    async def account(self, organization_id: str, account_id: str) -> Account | None:
        request = GetAccountRequest(organization_id=organization_id, social_account_id=account_id)
        try:
            with calling():
                response = await self._stub.GetAccount(request, timeout=self._deadline)
        except NotFound:
            return None
        except Unavailable:
            raise
        except (Fault, grpc.aio.AioRpcError) as error:
            raise Unavailable("ACCOUNT_NOT_KNOWN", "publisher did not answer whether the account exists") from error
        return events.account(organization_id, response.social_account)


class ChannelClient:
    def __init__(self, channel: grpc.aio.Channel, *, deadline: timedelta) -> None:
        self._stub = PublisherServiceStub(channel)
        self._deadline = deadline.total_seconds()

    async def rules(self) -> Rules:
        try:
            with calling():
                response = await self._stub.ListChannels(ListChannelsRequest(), timeout=self._deadline)
        except Unavailable:
            raise
        except (Fault, grpc.aio.AioRpcError) as error:
            # A release of Publisher that has no such call, for example.
            raise Unavailable("RULES_NOT_KNOWN", "publisher did not answer what its channels take") from error
        return rules.rules(response)


class MediaClient:
    def __init__(self, channel: grpc.aio.Channel, *, deadline: timedelta) -> None:
        self._stub = PublisherServiceStub(channel)
        self._deadline = deadline.total_seconds()

    async def inspect(self, organization_id: str, urls: Sequence[str]) -> Inspected:
        places = asyncio.Semaphore(_QUESTIONS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(self._ask(places, organization_id, urls[first : first + _MOST_MEDIA]))
                for first in range(0, len(urls), _MOST_MEDIA)
            ]
        return {url: found for each in asked for url, found in each.result().items()}

    async def _ask(self, places: asyncio.Semaphore, organization_id: str, urls: Sequence[str]) -> Inspected:
        """Returns nothing if Publisher does not answer in time. A refusal is a defect: asking again changes nothing."""
        request = InspectMediaRequest(organization_id=organization_id, urls=urls)
        try:
            async with asyncio.timeout(self._deadline), places:
                with calling():
                    response = await self._stub.InspectMedia(request, timeout=self._deadline)
        except (Unavailable, TimeoutError):
            return {}
        except Fault as refusal:
            raise RuntimeError("publisher refused to inspect media") from refusal
        except grpc.aio.AioRpcError as error:
            # A release of Publisher that has no such call, for example.
            _log.warning("publisher did not answer what the media is: %s", error.code())
            return {}
        return contents.inspected(response)


class PublisherClient:
    def __init__(self, channel: grpc.aio.Channel, *, deadline: timedelta) -> None:
        self._stub = PublisherServiceStub(channel)
        self._deadline = deadline.total_seconds()

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        request = WithdrawContentRequest(organization_id=organization_id, draft_id=draft_id, below_revision=below)
        response = await self._call(request)
        if response is None:
            return None
        # PUBLISHED without its evidence would mean "nothing is out" to the caller.
        if response.outcome not in _OUTCOMES or (response.outcome == WITHDRAW_OUTCOME_PUBLISHED) != bool(
            response.published
        ):
            _log.error("publisher answered a withdrawal with an unknown outcome %d", response.outcome)
            raise Unavailable("WITHDRAWAL_NOT_CONFIRMED", "the withdrawal was not confirmed")
        return events.withdrawal_answer(organization_id, draft_id, below, response)

    async def _call(self, request: WithdrawContentRequest) -> WithdrawContentResponse | None:
        try:
            with calling():
                return await self._stub.WithdrawContent(request, timeout=self._deadline)
        except Unavailable:
            raise
        except (Fault, grpc.aio.AioRpcError) as error:
            if isinstance(error, Refused) and error.reason == "REVISION_NOT_KNOWN":
                return None
            # A defect on either side. For the caller it is the same: the older text is not withdrawn.
            _log.exception(
                "publisher did not withdraw draft %s below revision %d", request.draft_id, request.below_revision
            )
            raise Unavailable("WITHDRAWAL_NOT_CONFIRMED", "the withdrawal was not confirmed") from error
