"""A fake of Publisher's posts on a real gRPC server: it gives back all but those that have started."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc

from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_CANCELED,
    POST_JOB_STATE_SENDING,
    PostJob,
)
from postflow.publisher.v1.publisher_service_pb2 import (
    CANCEL_OUTCOME_CANCELED,
    CANCEL_OUTCOME_TOO_LATE,
    CancelPostJobsRequest,
    CancelPostJobsResponse,
    CancelResult,
    PutHoldRequest,
    PutHoldResponse,
    ReleaseHoldRequest,
    ReleaseHoldResponse,
    SlotPost,
)
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceServicer
from servicekit.faults import Fault, Refused

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass
class FakePosts(PublisherServiceServicer):
    # The drafts whose posts are being sent.
    started: set[str] = field(default_factory=set)
    fault: Fault | None = None
    asked: list[SlotPost] = field(default_factory=list)
    # The revision of each account's hold, and whether it is in force.
    holds: dict[str, tuple[int, bool]] = field(default_factory=dict)

    async def CancelPostJobs(self, request: CancelPostJobsRequest, context: Context) -> CancelPostJobsResponse:
        self.asked += request.posts
        if self.fault:
            raise self.fault
        return CancelPostJobsResponse(results=map(self._result, request.posts))

    async def PutHold(self, request: PutHoldRequest, context: Context) -> PutHoldResponse:
        self._hold(request.scope_id, request.revision, is_held=True)
        return PutHoldResponse(in_flight_post_job_ids=[f"job-{draft}" for draft in sorted(self.started)])

    async def ReleaseHold(self, request: ReleaseHoldRequest, context: Context) -> ReleaseHoldResponse:
        self._hold(request.hold_id.removeprefix("queue-"), request.revision, is_held=False)
        return ReleaseHoldResponse()

    def _hold(self, account: str, revision: int, *, is_held: bool) -> None:
        if self.fault:
            raise self.fault
        if revision < (known := self.holds.get(account, (0, False))[0]):
            raise Refused("HOLD_SUPERSEDED", "a newer revision is known", metadata={"revision": str(known)})
        self.holds[account] = (revision, is_held)

    def _result(self, post: SlotPost) -> CancelResult:
        job = PostJob(
            id=f"job-{post.draft_id}",
            draft_id=post.draft_id,
            target=post.target,
            slot_id=post.slot_id,
            slot_revision=post.slot_revision,
            version=100 + len(self.asked),
            state=POST_JOB_STATE_SENDING,
        )
        if post.draft_id in self.started:
            return CancelResult(outcome=CANCEL_OUTCOME_TOO_LATE, post_job=job)
        job.state, job.state_reason = POST_JOB_STATE_CANCELED, "TAKEN_BACK"
        return CancelResult(outcome=CANCEL_OUTCOME_CANCELED, post_job=job)

    async def GetPostJob(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue does not ask for it")

    ListPostJobs = WithdrawContent = ResolvePostJob = ListHolds = GetPostJob
