"""Publisher's two services over gRPC: decode, call, encode."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

import grpc

from channels.rules import ChannelRules
from postflow.publisher.v1 import publisher_service_pb2, social_account_service_pb2
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceServicer
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceServicer
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.disconnect_account import DisconnectAccount
from publisher_service.application.explain_post_job import ExplainPostJob
from publisher_service.application.finish_connect import FinishConnect
from publisher_service.application.inspect_media import InspectMedia
from publisher_service.application.publish_now import PublishNow
from publisher_service.application.put_hold import PutHold
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_activity import ReadActivity
from publisher_service.application.read_destinations import ReadDestinations
from publisher_service.application.read_holds import ReadHolds
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.refresh_credentials import RefreshCredentials
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.retry_post_job import RetryPostJob
from publisher_service.application.start_connect import StartConnect
from publisher_service.application.update_account import UpdateAccount
from publisher_service.application.update_destination import UpdateDestination
from publisher_service.application.validate_content import ValidateContent
from publisher_service.application.watch_post_jobs import WatchPostJobs
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.account import AccountFilter
from publisher_service.domain.post_job import JobFilter
from publisher_service.domain.watching import Watched
from publisher_service.wire import (
    accounts,
    activities,
    calls,
    channel_rules,
    connecting,
    contents,
    destinations,
    explanations,
    holds,
    inspections,
    posts,
    take_backs,
    watching,
)
from publisher_service.wire.targets import distinct_targets
from servicekit.pg.ledger import mutation
from servicekit.rpc import MAX_SENT_BYTES, Sizes
from servicekit.rpc.paging import next_page_token, read_page, read_resume_token, resume_token

Context = grpc.aio.ServicerContext[Any, Any]

# A fetch that takes longer goes on, and is found by the next call.
_PATIENCE = timedelta(seconds=4)
_OF_POSTS = "postflow.publisher.v1.PublisherService"
_OF_ACCOUNTS = "postflow.publisher.v1.SocialAccountService"
_MANY_TEXTS = (
    f"{_OF_POSTS}/CancelPostJobs",
    f"{_OF_POSTS}/GetPostJob",
    f"{_OF_POSTS}/ListDestinations",
    f"{_OF_POSTS}/ListHolds",
    f"{_OF_POSTS}/ListPostJobs",
    f"{_OF_POSTS}/PublishNow",
    f"{_OF_ACCOUNTS}/ListAccounts",
)
SIZES = {method: Sizes(answer=MAX_SENT_BYTES) for method in _MANY_TEXTS}
"""Each post, attempt, account and destination may have an error of 2,000 characters, and a change is made by then."""
DEADLINES = {
    f"{_OF_ACCOUNTS}/ConnectAccount": timedelta(seconds=40),
    f"{_OF_ACCOUNTS}/FinishConnect": timedelta(seconds=80),
    f"{_OF_ACCOUNTS}/RefreshCredentials": timedelta(seconds=50),
}
"""Deadlines of calls that come without one. They wait for a network: once, twice, or as long as for a refresh."""


class PublisherServicer(PublisherServiceServicer):
    def __init__(
        self,
        *,
        cancel: CancelPostJobs,
        list_destinations: ReadDestinations,
        explain: ExplainPostJob,
        inspect_media: InspectMedia,
        list_holds: ReadHolds,
        publish_now: PublishNow,
        put_hold: PutHold,
        read: ReadJobs,
        release_hold: ReleaseHold,
        resolve: ResolvePostJob,
        retry: RetryPostJob,
        update_destination: UpdateDestination,
        validate: ValidateContent,
        watch: WatchPostJobs,
        withdraw: WithdrawContent,
        channels: Sequence[tuple[str, str, Mapping[str, ChannelRules]]],
    ) -> None:
        """`channels` are the providers, each with its proof and its channels' rules."""
        self._cancel = cancel
        self._list_destinations = list_destinations
        self._explain = explain
        self._inspect_media = inspect_media
        self._list_holds = list_holds
        self._publish_now = publish_now
        self._put_hold = put_hold
        self._read = read
        self._release_hold = release_hold
        self._update_destination = update_destination
        self._validate = validate
        self._channels = channels
        self._watch = watch
        self._withdraw = withdraw
        self._resolve = resolve
        self._retry = retry

    async def GetPostJob(
        self, request: publisher_service_pb2.GetPostJobRequest, context: Context
    ) -> publisher_service_pb2.GetPostJobResponse:
        return posts.get_post_job_response(*await self._read.get(request.organization_id, request.post_job_id))

    async def ListPostJobs(
        self, request: publisher_service_pb2.ListPostJobsRequest, context: Context
    ) -> publisher_service_pb2.ListPostJobsResponse:
        page = read_page(request)
        wanted = JobFilter(
            organization_id=request.organization_id,
            draft_id=request.draft_id,
            social_account_id=request.social_account_id,
            states=posts.states_from(request.states),
        )
        before = (datetime.fromisoformat(str(page.after[0])), str(page.after[1])) if page.after else None
        found = await self._read.list(wanted, before=before, limit=page.size + 1)
        shown = found[: page.size]
        has_more = len(found) > len(shown)
        token = next_page_token(request, (shown[-1].create_time.isoformat(), shown[-1].id)) if has_more else ""
        return posts.list_post_jobs_response(shown, token)

    async def ExplainPostJob(
        self, request: publisher_service_pb2.ExplainPostJobRequest, context: Context
    ) -> publisher_service_pb2.ExplainPostJobResponse:
        explained = await self._explain(request.organization_id, request.post_job_id)
        return explanations.explain_post_job_response(explained)

    async def WithdrawContent(
        self, request: publisher_service_pb2.WithdrawContentRequest, context: Context
    ) -> publisher_service_pb2.WithdrawContentResponse:
        withdrawal = await self._withdraw(request.organization_id, request.draft_id, request.below_revision)
        return posts.withdraw_response(withdrawal)

    async def ResolvePostJob(
        self, request: publisher_service_pb2.ResolvePostJobRequest, context: Context
    ) -> publisher_service_pb2.ResolvePostJobResponse:
        call = mutation(request, publisher_service_pb2.ResolvePostJobResponse, posts.resolve_post_job_response)
        return await self._resolve(call, request.post_job_id, posts.resolution_from(request))

    async def RetryPostJob(
        self, request: publisher_service_pb2.RetryPostJobRequest, context: Context
    ) -> publisher_service_pb2.RetryPostJobResponse:
        call = mutation(request, publisher_service_pb2.RetryPostJobResponse, calls.retry_response)
        return await self._retry(call, request.post_job_id, calls.latest_time_of(request))

    async def PublishNow(
        self, request: publisher_service_pb2.PublishNowRequest, context: Context
    ) -> publisher_service_pb2.PublishNowResponse:
        call = mutation(request, publisher_service_pb2.PublishNowResponse, calls.publish_now_response)
        return await self._publish_now(call, calls.urgent_posts_from(request))

    async def WatchPostJobs(
        self, request: publisher_service_pb2.WatchPostJobsRequest, context: Context
    ) -> AsyncIterator[publisher_service_pb2.WatchPostJobsResponse]:
        since = watching.mark(read_resume_token(request))
        watched = Watched(
            organization_id=request.organization_id,
            draft_id=request.draft_id,
            social_account_id=request.social_account_id,
        )
        async with aclosing(self._watch(watched, since)) as watch:
            async for news in watch:
                yield watching.watch_post_jobs_response(news, resume_token(request, watching.cursor(news.mark)))

    async def CancelPostJobs(
        self, request: publisher_service_pb2.CancelPostJobsRequest, context: Context
    ) -> publisher_service_pb2.CancelPostJobsResponse:
        call = mutation(request, publisher_service_pb2.CancelPostJobsResponse, take_backs.cancel_response)
        return await self._cancel(call, take_backs.slot_posts_from(request))

    async def PutHold(
        self, request: publisher_service_pb2.PutHoldRequest, context: Context
    ) -> publisher_service_pb2.PutHoldResponse:
        call = mutation(request, publisher_service_pb2.PutHoldResponse, holds.put_hold_response)
        return await self._put_hold(call, holds.wanted_hold_from(request))

    async def ReleaseHold(
        self, request: publisher_service_pb2.ReleaseHoldRequest, context: Context
    ) -> publisher_service_pb2.ReleaseHoldResponse:
        call = mutation(request, publisher_service_pb2.ReleaseHoldResponse, holds.release_hold_response)
        return await self._release_hold(call, request.hold_id, request.revision)

    async def ListHolds(
        self, request: publisher_service_pb2.ListHoldsRequest, context: Context
    ) -> publisher_service_pb2.ListHoldsResponse:
        page = read_page(request)
        wanted = holds.hold_filter_from(request)
        after = (datetime.fromisoformat(str(page.after[0])), str(page.after[1])) if page.after else None
        found = await self._list_holds(wanted, after=after, limit=page.size + 1)
        shown = found[: page.size]
        has_more = len(found) > len(shown)
        token = next_page_token(request, (shown[-1].create_time.isoformat(), shown[-1].id)) if has_more else ""
        return holds.list_holds_response(shown, token)

    async def ListDestinations(
        self, request: publisher_service_pb2.ListDestinationsRequest, context: Context
    ) -> publisher_service_pb2.ListDestinationsResponse:
        page = read_page(request)
        after = tuple(map(str, page.after)) if page.after else None
        wanted = destinations.destination_filter_from(request)
        found = await self._list_destinations(wanted, after=after, limit=page.size + 1)
        shown = found[: page.size]
        last = shown[-1].target if len(found) > len(shown) else None
        token = next_page_token(request, (last.social_account_id, last.channel, last.destination)) if last else ""
        return destinations.list_destinations_response(shown, token)

    async def UpdateDestination(
        self, request: publisher_service_pb2.UpdateDestinationRequest, context: Context
    ) -> publisher_service_pb2.UpdateDestinationResponse:
        response = destinations.update_destination_response
        call = mutation(request, publisher_service_pb2.UpdateDestinationResponse, response)
        return await self._update_destination(call, destinations.destination_change_from(request))

    async def ListChannels(
        self, request: publisher_service_pb2.ListChannelsRequest, context: Context
    ) -> publisher_service_pb2.ListChannelsResponse:
        wanted = [each for each in self._channels if request.provider in {"", each[0]}]
        return channel_rules.list_channels_response(wanted)

    async def ValidateContent(
        self, request: publisher_service_pb2.ValidateContentRequest, context: Context
    ) -> publisher_service_pb2.ValidateContentResponse:
        targets = distinct_targets(request.targets, "targets")
        content = contents.checked_content(request.content, targets)
        found = await self._validate(request.organization_id, content, targets)
        return channel_rules.validate_content_response(found)

    async def InspectMedia(
        self, request: publisher_service_pb2.InspectMediaRequest, context: Context
    ) -> publisher_service_pb2.InspectMediaResponse:
        found = await self._inspect_media(request.organization_id, request.urls, patience=_PATIENCE)
        return inspections.inspect_media_response(request.urls, found)


class SocialAccountServicer(SocialAccountServiceServicer):
    def __init__(
        self,
        *,
        connect: ConnectAccount,
        start: StartConnect,
        finish: FinishConnect,
        refresh: RefreshCredentials,
        disconnect: DisconnectAccount,
        read: ReadAccounts,
        activity: ReadActivity,
        update: UpdateAccount,
    ) -> None:
        self._connect = connect
        self._start = start
        self._finish = finish
        self._refresh = refresh
        self._disconnect = disconnect
        self._read = read
        self._activity = activity
        self._update = update

    async def ConnectAccount(
        self, request: social_account_service_pb2.ConnectAccountRequest, context: Context
    ) -> social_account_service_pb2.ConnectAccountResponse:
        call = mutation(request, social_account_service_pb2.ConnectAccountResponse, accounts.connect_account_response)
        return await self._connect(call, accounts.connection_from(request))

    async def StartConnect(
        self, request: social_account_service_pb2.StartConnectRequest, context: Context
    ) -> social_account_service_pb2.StartConnectResponse:
        call = mutation(request, social_account_service_pb2.StartConnectResponse, connecting.start_connect_response)
        return await self._start(call, connecting.wanted_session_from(request))

    async def FinishConnect(
        self, request: social_account_service_pb2.FinishConnectRequest, context: Context
    ) -> social_account_service_pb2.FinishConnectResponse:
        call = mutation(request, social_account_service_pb2.FinishConnectResponse, connecting.finish_connect_response)
        return await self._finish(call, connecting.return_from(request))

    async def RefreshCredentials(
        self, request: social_account_service_pb2.RefreshCredentialsRequest, context: Context
    ) -> social_account_service_pb2.RefreshCredentialsResponse:
        response = connecting.refresh_credentials_response
        call = mutation(request, social_account_service_pb2.RefreshCredentialsResponse, response)
        return await self._refresh(call, request.social_account_id)

    async def UpdateAccount(
        self, request: social_account_service_pb2.UpdateAccountRequest, context: Context
    ) -> social_account_service_pb2.UpdateAccountResponse:
        call = mutation(request, social_account_service_pb2.UpdateAccountResponse, accounts.update_account_response)
        return await self._update(call, accounts.account_change_from(request))

    async def DisconnectAccount(
        self, request: social_account_service_pb2.DisconnectAccountRequest, context: Context
    ) -> social_account_service_pb2.DisconnectAccountResponse:
        response = accounts.disconnect_account_response
        call = mutation(request, social_account_service_pb2.DisconnectAccountResponse, response)
        return await self._disconnect(call, request.social_account_id, request.note)

    async def GetAccount(
        self, request: social_account_service_pb2.GetAccountRequest, context: Context
    ) -> social_account_service_pb2.GetAccountResponse:
        return accounts.get_account_response(await self._read.get(request.organization_id, request.social_account_id))

    async def ListAccounts(
        self, request: social_account_service_pb2.ListAccountsRequest, context: Context
    ) -> social_account_service_pb2.ListAccountsResponse:
        page = read_page(request)
        wanted = AccountFilter(
            organization_id=request.organization_id,
            states=accounts.account_states_from(request.states),
            provider=request.provider,
        )
        after = str(page.after[0]) if page.after else ""
        found = await self._read.list(wanted, after=after, limit=page.size + 1)
        shown = found[: page.size]
        token = next_page_token(request, (shown[-1].id,)) if len(found) > len(shown) else ""
        return accounts.list_accounts_response(shown, token)

    async def ListActivity(
        self, request: social_account_service_pb2.ListActivityRequest, context: Context
    ) -> social_account_service_pb2.ListActivityResponse:
        page = read_page(request)
        wanted = activities.activity_filter_from(request)
        before = (datetime.fromisoformat(str(page.after[0])), str(page.after[1])) if page.after else None
        found = await self._activity.list(wanted, before=before, limit=page.size + 1)
        shown = found[: page.size]
        has_more = len(found) > len(shown)
        token = next_page_token(request, (shown[-1].create_time.isoformat(), shown[-1].id)) if has_more else ""
        return activities.list_activity_response(shown, token)

    async def GetUsage(
        self, request: social_account_service_pb2.GetUsageRequest, context: Context
    ) -> social_account_service_pb2.GetUsageResponse:
        usage = await self._activity.usage(request.organization_id, request.social_account_id)
        return activities.get_usage_response(usage)
