"""Drafts with follow-ups on a replica: their parts go out one by one, and their jobs are read by part."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from channels.rules import ChannelRules, FollowUpKind, FollowUpRule
from postflow.drafts.v1 import draft_pb2
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed
from publisher_service.domain.outcome import Accepted, Outcome
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import PostJob, Target, job_id
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter, a_command, a_draft, claims_in

COMMENTS = ("one", "two")


class ThreadingAdapter(TrustingAdapter):
    """Takes threads."""

    rules: Mapping[str, ChannelRules] = {
        channel: replace(rules, follow_ups=FollowUpRule(kind=FollowUpKind.THREAD, most=9, text=rules.text))
        for channel, rules in SANDBOX_RULES.items()
    }


class SilentAdapter(TrustingAdapter):
    """Takes no follow-ups."""

    rules: Mapping[str, ChannelRules] = {
        channel: replace(rules, follow_ups=None) for channel, rules in SANDBOX_RULES.items()
    }


def content_of(*comments: str, channel: str = "facebook", said: str = "hello") -> bytes:
    follow_ups = [draft_pb2.FollowUp(channel=channel, text=each) for each in comments]
    return draft_pb2.DraftContent(text=said, follow_ups=follow_ups).SerializeToString(deterministic=True)


def commented(draft: str = "d0", *comments: str, account: str = "", revision: int = 1, **fields: Any) -> SavedDraft:
    content = content_of(*comments)
    return replace(
        a_draft(draft, account or f"page-{draft}", version=revision + 1),
        revision=revision,
        content=content,
        content_digest=hashlib.sha256(content).hexdigest(),
        follow_ups={"facebook": len(comments)} if comments else {},
        **fields,
    )


def id_of(part: int, draft: str = "d0", account: str = "") -> str:
    target = Target(social_account_id=account or f"page-{draft}", channel="facebook")
    return job_id("acme", draft, target, part)


async def write(replica: Replica, *comments: str) -> None:
    """Saves a draft with these comments on one connected account."""
    await replica.posts(1)
    await replica.save(commented("d0", *(comments or COMMENTS)))


async def claim_post(replica: Replica) -> Claimed:
    (claimed,) = claims_in(await replica.claim([a_command("d0")]))
    return claimed


async def claim_part(replica: Replica) -> Claimed:
    """Claims the follow-up that is due, as the sweep hands it on."""

    async def claims() -> Claimed:
        handed_on = (await replica.recover()).due
        assert handed_on
        (claimed,) = claims_in(await replica.claim(handed_on))
        return claimed

    return await eventually(claims)


async def settle(replica: Replica, claimed: Claimed, outcome: Outcome | None = None) -> PostJob:
    accepted = Accepted(external_id=f"out-{claimed.job.part}", external_url=f"https://out/{claimed.job.part}")
    sent = Sent(claimed=claimed, outcome=outcome or accepted, time=claimed.job.update_time)
    (job,) = await replica.settle([sent])
    return job


async def publish(replica: Replica, *, parts: int = 1) -> None:
    """Publishes the post, and the first follow-ups: so many parts."""
    await settle(replica, await claim_post(replica))
    for _ in range(1, parts):
        assert await replica.begin_follow_ups()
        await settle(replica, await claim_part(replica))


async def jobs(replica: Replica) -> Sequence[Row[Any]]:
    return await replica.rows("select * from post_job order by draft_id, part")


async def states(replica: Replica) -> list[str]:
    return [f"{job.state} {job.state_reason or job.error_reason}".strip() for job in await jobs(replica)]


async def due(replica: Replica) -> int:
    return len(await replica.rows("select * from follow_up_due"))
