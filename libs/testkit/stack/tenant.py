"""Calls of one organization to the four services: the ones that tests need most."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import grpc

from postflow.drafts.v1 import draft_pb2, drafts_events_pb2, drafts_service_pb2, drafts_service_pb2_grpc
from postflow.publisher.v1 import (
    notification_service_pb2_grpc,
    post_job_pb2,
    publisher_admin_service_pb2_grpc,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
    social_account_service_pb2,
    social_account_service_pb2_grpc,
)
from postflow.queue.v1 import queue_pb2, queue_service_pb2, queue_service_pb2_grpc, queue_slot_pb2
from postflow.schedule.v1 import (
    account_schedule_pb2,
    schedule_service_pb2,
    schedule_service_pb2_grpc,
    timer_pb2,
    timer_service_pb2,
    timer_service_pb2_grpc,
)
from postflow.target.v1 import target_pb2
from servicekit.rpc import open_channel
from servicekit.timestamps import timestamp
from testkit.eventually import eventually

PACED = queue_service_pb2.OVERDUE_POLICY_PUBLISH_PACED
TOKEN = "sandbox-token"  # noqa: S105 - the sandbox accepts any token with this prefix


class Clients:
    """A channel and the stubs of each service."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self.channels: Mapping[str, grpc.aio.Channel] = {
            service: open_channel(target) for service, target in targets.items()
        }
        self.schedule = schedule_service_pb2_grpc.ScheduleServiceStub(self.channels["schedule"])
        self.timers = timer_service_pb2_grpc.TimerServiceStub(self.channels["schedule"])
        self.queue = queue_service_pb2_grpc.QueueServiceStub(self.channels["queue"])
        self.drafts = drafts_service_pb2_grpc.DraftsServiceStub(self.channels["drafts"])
        self.publisher = publisher_service_pb2_grpc.PublisherServiceStub(self.channels["publisher"])
        self.publisher_admin = publisher_admin_service_pb2_grpc.PublisherAdminServiceStub(self.channels["publisher"])
        self.accounts = social_account_service_pb2_grpc.SocialAccountServiceStub(self.channels["publisher"])
        self.notifications = notification_service_pb2_grpc.NotificationServiceStub(self.channels["publisher"])

    async def ready(self) -> None:
        """Waits until all channels have reconnected: after a restart they do so only now and then, and refuse calls."""
        for channel in self.channels.values():
            await channel.channel_ready()

    async def close(self) -> None:
        for channel in self.channels.values():
            await channel.close()


def _as_announced(draft: draft_pb2.Draft, version: int) -> drafts_events_pb2.DraftSaved:
    return drafts_events_pb2.DraftSaved(
        draft_id=draft.id,
        version=version,
        revision=draft.revision,
        content=draft.content.SerializeToString(deterministic=True),
        content_digest=draft.content_digest,
        approved=draft.approved,
        targets=draft.targets,
    )


class Tenant:
    """One organization. Its accounts at the provider carry its id, which marks its effects in the ledger."""

    def __init__(self, clients: Clients, organization_id: str) -> None:
        self.clients = clients
        self.organization_id = organization_id

    def external(self, account: str) -> str:
        """Returns the account's id at the provider."""
        return f"{self.organization_id}.{account}"

    async def connect(self, account: str = "page", token: str = TOKEN, *, provider: str = "sandbox") -> None:
        """Connects the account; once it was disconnected, it takes another token that begins with `sandbox-`."""
        await self.clients.accounts.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id=self.organization_id,
                social_account_id=account,
                provider=provider,
                external_account_id=self.external(account),
                credentials=social_account_service_pb2.Credentials(access_token=token),
                request_id=f"connect-{account}-{token}",
            )
        )

    async def put_schedule(self, schedule: account_schedule_pb2.AccountSchedule) -> None:
        await self.clients.schedule.PutAccountSchedule(
            schedule_service_pb2.PutAccountScheduleRequest(
                organization_id=self.organization_id, account_schedule=schedule
            )
        )

    async def create_timer(self, timer_id: str, timer: timer_pb2.Timer) -> timer_pb2.Timer:
        answer = await self.clients.timers.CreateTimer(
            timer_service_pb2.CreateTimerRequest(
                organization_id=self.organization_id,
                timer_id=timer_id,
                timer=timer,
                request_id=f"create-timer-{timer_id}",
            )
        )
        return answer.timer

    async def timer(self, timer_id: str) -> timer_pb2.Timer:
        answer = await self.clients.timers.GetTimer(
            timer_service_pb2.GetTimerRequest(organization_id=self.organization_id, timer_id=timer_id)
        )
        return answer.timer

    async def create(
        self,
        draft_id: str,
        text: str,
        targets: Sequence[target_pb2.Target] = (),
        *,
        approved: bool = True,
        requested_time: datetime | None = None,
        brand: str = "",
        comments: Sequence[str] = (),
    ) -> draft_pb2.Draft:
        """Creates a draft; without targets it gets the account `page` on Facebook, where its comments are."""
        follow_ups = [draft_pb2.FollowUp(channel="facebook", text=each) for each in comments]
        content = draft_pb2.DraftContent(text=text, follow_ups=follow_ups)
        created = await self.clients.drafts.CreateDraft(
            drafts_service_pb2.CreateDraftRequest(
                organization_id=self.organization_id,
                draft_id=draft_id,
                draft=draft_pb2.Draft(
                    content=content,
                    targets=targets or [target()],
                    requested_time=timestamp(requested_time),
                    brand_id=brand,
                ),
                request_id=f"create-{draft_id}",
            )
        )
        return await self.approve(draft_id) if approved else created.draft

    async def approve(self, draft_id: str) -> draft_pb2.Draft:
        approved = await self.clients.drafts.ApproveDraft(
            drafts_service_pb2.ApproveDraftRequest(organization_id=self.organization_id, draft_id=draft_id)
        )
        return approved.draft

    async def change_text(self, draft_id: str, text: str) -> drafts_service_pb2.UpdateDraftResponse:
        return await self.change(draft_id, text=text)

    async def change(
        self,
        draft_id: str,
        *,
        text: str | None = None,
        targets: Sequence[target_pb2.Target] | None = None,
        request_id: str = "",
    ) -> drafts_service_pb2.UpdateDraftResponse:
        """Changes the text and the targets that are not None."""
        draft = draft_pb2.Draft(id=draft_id, targets=targets or ())
        paths = [] if targets is None else ["targets"]
        if text is not None:
            draft.content.text = text
            paths.append("content.text")
        request = drafts_service_pb2.UpdateDraftRequest(
            organization_id=self.organization_id, draft=draft, request_id=request_id
        )
        request.update_mask.paths.extend(paths)
        return await self.clients.drafts.UpdateDraft(request)

    async def ask_for(self, draft_id: str, time: datetime | None) -> draft_pb2.Draft:
        """Has the draft ask for another time, or for none."""
        request = drafts_service_pb2.UpdateDraftRequest(
            organization_id=self.organization_id, draft=draft_pb2.Draft(id=draft_id, requested_time=timestamp(time))
        )
        request.update_mask.paths.append("requested_time")
        return (await self.clients.drafts.UpdateDraft(request)).draft

    async def change_targets(
        self, draft_id: str, targets: Sequence[target_pb2.Target]
    ) -> drafts_service_pb2.UpdateDraftResponse:
        return await self.change(draft_id, targets=targets)

    async def schedule_at(
        self, draft_id: str, time: datetime, *accounts: str, request_id: str = ""
    ) -> list[queue_slot_pb2.QueueSlot]:
        """Schedules the draft on these accounts, else on all of its own; a second call needs a `request_id`."""
        answer = await self.clients.queue.ScheduleAt(
            queue_service_pb2.ScheduleAtRequest(
                organization_id=self.organization_id,
                draft_id=draft_id,
                schedule_time=timestamp(time),
                social_account_ids=accounts,
                request_id=request_id or f"schedule-{draft_id}",
            )
        )
        return list(answer.queue_slots)

    async def add_to_queue(self, draft_id: str) -> list[queue_slot_pb2.QueueSlot]:
        answer = await self.clients.queue.AddToQueue(
            queue_service_pb2.AddToQueueRequest(
                organization_id=self.organization_id, draft_id=draft_id, request_id=f"add-{draft_id}"
            )
        )
        return list(answer.queue_slots)

    async def remove(self, slot_id: str, *, request_id: str) -> None:
        await self.clients.queue.RemoveFromQueue(
            queue_service_pb2.RemoveFromQueueRequest(
                organization_id=self.organization_id, slot_id=slot_id, request_id=request_id
            )
        )

    async def move(self, slot_id: str, time: datetime, *, request_id: str) -> None:
        await self.clients.queue.MoveSlot(
            queue_service_pb2.MoveSlotRequest(
                organization_id=self.organization_id,
                slot_id=slot_id,
                schedule_time=timestamp(time),
                request_id=request_id,
            )
        )

    async def set_late_policy(self, account: str, action: queue_pb2.LateAction, *, grace: timedelta) -> None:
        """Says what becomes of posts that are later than the grace."""
        policy = queue_pb2.LatePolicy(action=action)
        policy.grace.FromTimedelta(grace)
        await self.clients.queue.UpdateQueue(
            queue_service_pb2.UpdateQueueRequest(
                organization_id=self.organization_id, social_account_id=account, late_policy=policy
            )
        )

    async def pause(self, account: str, *, request_id: str) -> Sequence[str]:
        """Returns the post jobs that are in flight."""
        answer = await self.clients.queue.PauseQueue(
            queue_service_pb2.PauseQueueRequest(
                organization_id=self.organization_id, social_account_id=account, request_id=request_id
            )
        )
        return answer.in_flight_post_job_ids

    async def resume(self, account: str, overdue: queue_service_pb2.OverduePolicy = PACED, *, request_id: str) -> None:
        await self.clients.queue.ResumeQueue(
            queue_service_pb2.ResumeQueueRequest(
                organization_id=self.organization_id,
                social_account_id=account,
                overdue=overdue,
                request_id=request_id,
            )
        )

    async def publish_now(
        self, draft_id: str, draft: draft_pb2.Draft | None = None, *, version: int = 2, request_id: str = ""
    ) -> Sequence[publisher_service_pb2.PublishNowResult]:
        """Has Publisher send the draft at once; `draft` is what was read of it, if it was.

        `version` is that of its newest announcement, which no call shows: 2 for a draft that was created and approved.
        """
        draft = draft or await self.draft(draft_id)
        answer = await self.clients.publisher.PublishNow(
            publisher_service_pb2.PublishNowRequest(
                organization_id=self.organization_id,
                draft=_as_announced(draft, version),
                request_id=request_id,
            )
        )
        return list(answer.results)

    async def draft(self, draft_id: str) -> draft_pb2.Draft:
        answer = await self.clients.drafts.GetDraft(
            drafts_service_pb2.GetDraftRequest(organization_id=self.organization_id, draft_id=draft_id)
        )
        return answer.draft

    async def slots(self, draft_id: str = "") -> list[queue_slot_pb2.QueueSlot]:
        answer = await self.clients.queue.ListQueueSlots(
            queue_service_pb2.ListQueueSlotsRequest(organization_id=self.organization_id, draft_id=draft_id)
        )
        return list(answer.queue_slots)

    async def jobs(self, draft_id: str = "") -> list[post_job_pb2.PostJob]:
        answer = await self.clients.publisher.ListPostJobs(
            publisher_service_pb2.ListPostJobsRequest(organization_id=self.organization_id, draft_id=draft_id)
        )
        return list(answer.post_jobs)

    async def states(self, draft_id: str) -> set[str]:
        """Returns the states of the draft's posts, by their names in the database; those of follow-ups left out."""
        names = {post_job_pb2.PostJobState.Name(job.state) for job in await self.jobs(draft_id) if not job.part}
        return {name.removeprefix("POST_JOB_STATE_") for name in names}

    async def job(self, post_job_id: str) -> publisher_service_pb2.GetPostJobResponse:
        return await self.clients.publisher.GetPostJob(
            publisher_service_pb2.GetPostJobRequest(organization_id=self.organization_id, post_job_id=post_job_id)
        )

    async def retry(self, post_job_id: str) -> None:
        await self.clients.publisher.RetryPostJob(
            publisher_service_pb2.RetryPostJobRequest(
                organization_id=self.organization_id, post_job_id=post_job_id, request_id=f"retry-{post_job_id}"
            )
        )

    async def until(self, draft_id: str, state: draft_pb2.DraftState, *, within: float = 20.0) -> draft_pb2.Draft:
        """Waits until the draft has that state and returns it."""

        async def reached() -> draft_pb2.Draft:
            draft = await self.draft(draft_id)
            assert draft.state == state, f"draft {draft_id} is {draft_pb2.DraftState.Name(draft.state)}"
            return draft

        return await eventually(reached, within=within)

    async def until_job(
        self, draft_id: str, state: post_job_pb2.PostJobState, *, within: float = 20.0
    ) -> post_job_pb2.PostJob:
        """Waits until the draft's only post job has that state and returns it."""

        async def reached() -> post_job_pb2.PostJob:
            jobs = await self.jobs(draft_id)
            states = [post_job_pb2.PostJobState.Name(job.state) for job in jobs]
            assert [job.state for job in jobs] == [state], f"post jobs of {draft_id} are {states}"
            return jobs[0]

        return await eventually(reached, within=within)


def target(account: str = "page", channel: str = "facebook", destination: str = "") -> target_pb2.Target:
    return target_pb2.Target(social_account_id=account, channel=channel, destination=destination)
