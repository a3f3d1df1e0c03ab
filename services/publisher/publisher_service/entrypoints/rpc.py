"""Publisher's two services over gRPC: decode, call, encode."""

from datetime import datetime
from typing import Any

import grpc

import channels
from postflow.publisher.v1 import publisher_service_pb2, social_account_service_pb2
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceServicer
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceServicer
from publisher_service import wire
from publisher_service.application.connect_account import ConnectAccount, Connection
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.account import AccountFilter
from publisher_service.domain.post_job import JobFilter
from servicekit.faults import InvalidField
from servicekit.pg.ledger_by_hand import request_key
from servicekit.rpc.paging import next_page_token, read_page
from servicekit.run.settings import Secret

Context = grpc.aio.ServicerContext[Any, Any]


class PublisherServicer(PublisherServiceServicer):
    def __init__(self, *, read: ReadJobs, withdraw: WithdrawContent, resolve: ResolvePostJob) -> None:
        self._read = read
        self._withdraw = withdraw
        self._resolve = resolve

    async def GetPostJob(
        self, request: publisher_service_pb2.GetPostJobRequest, context: Context
    ) -> publisher_service_pb2.GetPostJobResponse:
        return wire.get_post_job_response(*await self._read.get(request.organization_id, request.post_job_id))

    async def ListPostJobs(
        self, request: publisher_service_pb2.ListPostJobsRequest, context: Context
    ) -> publisher_service_pb2.ListPostJobsResponse:
        page = read_page(request)
        wanted = JobFilter(
            organization_id=request.organization_id,
            draft_id=request.draft_id,
            social_account_id=request.social_account_id,
            states=wire.states_from(request.states),
        )
        before = (datetime.fromisoformat(str(page.after[0])), str(page.after[1])) if page.after else None
        found = await self._read.list(wanted, before=before, limit=page.size + 1)
        jobs = found[: page.size]
        response = publisher_service_pb2.ListPostJobsResponse(post_jobs=[wire.post_job(job) for job in jobs])
        if len(found) > len(jobs):
            response.next_page_token = next_page_token(request, (jobs[-1].create_time.isoformat(), jobs[-1].id))
        return response

    async def WithdrawContent(
        self, request: publisher_service_pb2.WithdrawContentRequest, context: Context
    ) -> publisher_service_pb2.WithdrawContentResponse:
        withdrawal = await self._withdraw(request.organization_id, request.draft_id, request.below_revision)
        return wire.withdraw_response(withdrawal)

    async def ResolvePostJob(
        self, request: publisher_service_pb2.ResolvePostJobRequest, context: Context
    ) -> publisher_service_pb2.ResolvePostJobResponse:
        key = request_key("ResolvePostJob", request)
        return await self._resolve(key, request.post_job_id, wire.resolution_from(request))


class SocialAccountServicer(SocialAccountServiceServicer):
    def __init__(self, *, connect: ConnectAccount, read: ReadAccounts) -> None:
        self._connect = connect
        self._read = read

    async def ConnectAccount(
        self, request: social_account_service_pb2.ConnectAccountRequest, context: Context
    ) -> social_account_service_pb2.ConnectAccountResponse:
        _check_credentials(request)
        wanted = Connection(
            organization_id=request.organization_id,
            account_id=request.social_account_id,
            provider=request.provider,
            external_account_id=request.external_account_id,
            display_name=request.display_name,
            channels=_normalised(request),
            access_token=Secret(request.credentials.access_token),
        )
        return await self._connect(wanted, request_key("ConnectAccount", request))

    async def GetAccount(
        self, request: social_account_service_pb2.GetAccountRequest, context: Context
    ) -> social_account_service_pb2.GetAccountResponse:
        account = await self._read.get(request.organization_id, request.social_account_id)
        return social_account_service_pb2.GetAccountResponse(social_account=wire.social_account(account))

    async def ListAccounts(
        self, request: social_account_service_pb2.ListAccountsRequest, context: Context
    ) -> social_account_service_pb2.ListAccountsResponse:
        page = read_page(request)
        wanted = AccountFilter(
            organization_id=request.organization_id,
            states=wire.account_states_from(request.states),
            provider=request.provider,
        )
        after = str(page.after[0]) if page.after else ""
        found = await self._read.list(wanted, after=after, limit=page.size + 1)
        shown = found[: page.size]
        return social_account_service_pb2.ListAccountsResponse(
            social_accounts=[wire.social_account(account) for account in shown],
            next_page_token=next_page_token(request, (shown[-1].id,)) if len(found) > len(shown) else "",
        )


def _check_credentials(request: social_account_service_pb2.ConnectAccountRequest) -> None:
    """Both travel in a provider's request line and headers."""
    name = request.external_account_id
    if not name.isprintable() or name.strip(".") == "":
        raise InvalidField("external_account_id", "must be printable, and more than dots")
    token = request.credentials.access_token
    if not (token.isascii() and token.isprintable() and token.strip()):
        raise InvalidField("credentials.access_token", "must be printable ASCII")


def _normalised(request: social_account_service_pb2.ConnectAccountRequest) -> tuple[str, ...]:
    names: list[str] = []
    for index, name in enumerate(request.channels):
        try:
            names.append(channels.normalise(name))
        except channels.UnknownChannel as error:
            raise InvalidField(f"channels[{index}]", str(error), reason="UNKNOWN_CHANNEL") from None
    return tuple(dict.fromkeys(names))
