"""PublishNow and RetryPostJob under faults; remembers which runs they have begun, and what they have refused."""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from datetime import datetime
from random import Random

from google.protobuf.message import Message
from google.protobuf.text_format import MessageToString

from postflow.drafts.v1.draft_pb2 import DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_FAILED, POST_JOB_STATE_MISSED, PostJob
from servicekit.clock import SystemClock
from testkit.stack.called_runs import Called, CalledRun, Refusal
from testkit.stack.remains import read_saved
from testkit.stack.stopping import REFUSAL, Insist, Stopping
from testkit.stack.stops import Scope
from testkit.stack.tenant import Tenant

PUBLISH, RETRY = "PublishNow", "RetryPostJob"
LEFT_ALONE = frozenset({"ALREADY_PUBLISHED", "ATTEMPT_OPEN", "NEEDS_ATTENTION"})
"""Reasons to refuse a post that is out or may be out."""
RETRYABLE = frozenset({POST_JOB_STATE_FAILED, POST_JOB_STATE_MISSED})


class Calling:
    def __init__(
        self, tenant: Tenant, insist: Insist, answers: Counter[str], stopping: Stopping, drafts_url: Callable[[], str]
    ) -> None:
        """Counts what was answered OK in `answers`; reads drafts as they are announced at `drafts_url`."""
        self._tenant = tenant
        self._insist = insist
        self._answers = answers
        self._stopping = stopping
        self._drafts_url = drafts_url
        self._runs: list[CalledRun] = []
        self._refusals: list[Refusal] = []
        self._differing: list[str] = []

    @property
    def called(self) -> Called:
        return Called(runs=tuple(self._runs), refusals=tuple(self._refusals), differing=tuple(self._differing))

    async def saved(self, draft: str) -> DraftSaved:
        """Reads the draft as it is announced, or will be; Drafts, which is to call PublishNow, knows it so."""
        return await self._insist(lambda: read_saved(self._drafts_url(), self._tenant.organization_id, draft))

    async def publish(
        self,
        saved: DraftSaved,
        request_id: str,
        *,
        texts: Sequence[str],
        has_slot: bool,
        over_cap: bool = False,
        times: int = 1,
    ) -> Set[str]:
        """Sends the draft at once and returns "" if a target was started, and the reasons for refused ones.

        `texts` are those of the draft, the oldest first. Without a slot, what is refused must not go out.
        """
        request = pb.PublishNowRequest(
            organization_id=self._tenant.organization_id, draft=saved, over_cap=over_cap, request_id=request_id
        )
        asked = SystemClock().now()
        answer: pb.PublishNowResponse = await self._insist(lambda: self._tenant.clients.publisher.PublishNow(request))
        answered = SystemClock().now()
        text = DraftContent.FromString(saved.content).text
        for result in answer.results:
            if result.outcome == pb.PUBLISH_NOW_OUTCOME_STARTED:
                older = frozenset(texts[: texts.index(text)]) - {text}
                self._began(result.post_job, PUBLISH, older, over_cap=over_cap)
            else:
                self._refused(result, asked, answered, has_slot=has_slot)
        for _ in range(times - 1):
            again = await self._insist(lambda: self._tenant.clients.publisher.PublishNow(request))
            self._compare(PUBLISH, answer, again)
        return {result.reason for result in answer.results}

    async def retry(self, draft: str, new_request_id: Callable[[], str], chance: Random) -> None:
        """Retries each post of the draft that has failed."""
        for job in await self._insist(lambda: self._tenant.jobs(draft)):
            if job.state not in RETRYABLE:
                continue
            request = pb.RetryPostJobRequest(
                organization_id=self._tenant.organization_id, post_job_id=job.id, request_id=new_request_id()
            )
            answer = await self._insist(lambda: self._tenant.clients.publisher.RetryPostJob(request))  # noqa: B023
            self._began(answer.post_job, RETRY)
            if answer.post_job.run <= job.run:
                self._differing.append(f"{RETRY} of run {job.run} of job {job.id} began run {answer.post_job.run}")
            if chance.random() < 0.3:
                again = await self._insist(lambda: self._tenant.clients.publisher.RetryPostJob(request))  # noqa: B023
                self._compare(RETRY, answer, again)

    def _began(self, job: PostJob, what: str, older: Set[str] = frozenset(), *, over_cap: bool = False) -> None:
        self._answers[what] += 1
        self._runs.append(
            CalledRun(
                organization_id=self._tenant.organization_id,
                post_job_id=job.id,
                run=job.run,
                version=job.version,
                what=what,
                older=older,
                over_cap=over_cap,
            )
        )

    def _refused(self, result: pb.PublishNowResult, asked: datetime, answered: datetime, *, has_slot: bool) -> None:
        self._answers[f"{PUBLISH} {result.reason}"] += 1
        job = result.post_job
        self._refusals.append(
            Refusal(
                organization_id=self._tenant.organization_id,
                social_account_id=job.target.social_account_id,
                post_job_id=job.id,
                reason=result.reason,
                asked=asked,
                answered=answered,
            )
        )
        if not has_slot and result.reason not in LEFT_ALONE:
            scope = Scope(social_account_id=job.target.social_account_id, post_job_id=job.id)
            self._stopping.stopped(REFUSAL, asked, scope)

    def _compare(self, what: str, first: Message, again: Message) -> None:
        self._answers[f"{what} repeated"] += 1
        if again != first:
            shown = [MessageToString(each, as_one_line=True) for each in (first, again)]
            self._differing.append(f"{what} was answered {shown[0]}, and when it was repeated {shown[1]}")
