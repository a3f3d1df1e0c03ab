"""Writes posts that are ready to go out into the three databases, as the services would."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from postflow.drafts.v1 import draft_pb2
from publisher_service.adapters.vault import Vault
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.post_job import Target, job_id
from queue_service.domain.command import REPEAT_DELAYS
from servicekit.ids import Uuid7Source

ORGANIZATIONS = 20
_CHANNEL = "facebook"
_CREDENTIALS = Credentials(access_token="sandbox-bench")  # noqa: S106 - the sandbox takes any


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    organization_id: str
    account_id: str
    draft_id: str
    slot_id: str
    job_id: str


def posts(count: int, prefix: str) -> list[Post]:
    """Returns posts of one account each, spread over organizations."""
    ids = Uuid7Source()
    made = []
    for number in range(count):
        organization, account, draft = (
            f"org-{number % ORGANIZATIONS}",
            f"{prefix}-account-{number}",
            f"{prefix}-{number}",
        )
        target = Target(social_account_id=account, channel=_CHANNEL)
        made.append(
            Post(
                organization_id=organization,
                account_id=account,
                draft_id=draft,
                slot_id=ids.new(),
                job_id=job_id(organization, draft, target),
            )
        )
    return made


class Seeder:
    def __init__(self, urls: Mapping[str, str], vault: Vault, now: datetime) -> None:
        self._urls = urls
        self._vault = vault
        self._now = now

    async def accounts(self, wanted: Sequence[Post], *, provider: str = "sandbox") -> None:
        now = self._now
        await self._copy(
            "publisher",
            "social_account",
            "organization_id id provider external_account_id display_name channels state credentials version "
            "create_time update_time",
            [
                (
                    post.organization_id,
                    post.account_id,
                    provider,
                    post.account_id,
                    "",
                    [_CHANNEL],
                    "CONNECTED",
                    self._vault.seal(_CREDENTIALS, organization_id=post.organization_id, account_id=post.account_id),
                    1,
                    now,
                    now,
                )
                for post in wanted
            ],
        )
        await self._copy(
            "publisher",
            "account_gate",
            "organization_id social_account_id connected provider",
            [(post.organization_id, post.account_id, True, provider) for post in wanted],
        )

    async def scheduled(self, wanted: Sequence[Post], schedule_time: datetime) -> None:
        """Writes approved drafts with a slot that no dispatcher sees until `Databases.release`."""
        await self._publisher(wanted, schedule_time)
        await self._queue(wanted, schedule_time)
        await self._drafts(wanted, schedule_time)
        for service in ("publisher", "queue", "drafts"):
            await self._execute(service, "analyze")

    async def slots(self, wanted: Sequence[Post], schedule_time: datetime) -> None:
        """Writes only slots, for commands that nobody carries out."""
        await self._queue(wanted, schedule_time)

    async def later_slots(self, of_each: int, after: datetime) -> None:
        """Writes so many more slots, an hour apart, for each account that has one."""
        await self._execute("queue", _LATER_SLOTS, of_each, after)
        await self._execute("queue", _THEIR_TARGETS)
        await self._execute("queue", "vacuum analyze")

    async def jobs(self, wanted: Sequence[Post], schedule_time: datetime) -> None:
        """Writes only post jobs and contents, for commands that do not come from Queue."""
        await self._publisher(wanted, schedule_time)
        await self._execute("publisher", "analyze")

    async def _publisher(self, wanted: Sequence[Post], time: datetime) -> None:
        content, digest = _content()
        await self._copy(
            "publisher",
            "content",
            "organization_id draft_id version revision content content_digest approved withdrawn_below post_job_ids",
            [(post.organization_id, post.draft_id, 1, 1, content, digest, True, 0, [post.job_id]) for post in wanted],
        )
        empty = dict.fromkeys(
            (
                "destination",
                "state_reason",
                "external_id",
                "external_url",
                "evidence_kind",
                "error_reason",
                "error_message",
                "target_month",
                "traceparent",
            ),
            "",
        )
        zero = dict.fromkeys(("attempts", "fence", "content_revision", "withdrawn_below"), 0)
        common = empty | zero | {"channel": _CHANNEL, "state": "SCHEDULED", "version": 2, "run": 1, "max_attempts": 5}
        columns = [*common, "organization_id", "id", "draft_id", "social_account_id", "slot_id", "slot_revision"]
        columns += ["schedule_time", "create_time", "update_time"]
        await self._copy(
            "publisher",
            "post_job",
            " ".join(columns),
            [
                (
                    *common.values(),
                    post.organization_id,
                    post.job_id,
                    post.draft_id,
                    post.account_id,
                    post.slot_id,
                    1,
                    time,
                    self._now,
                    self._now,
                )
                for post in wanted
            ],
        )

    async def _queue(self, wanted: Sequence[Post], time: datetime) -> None:
        connected = sorted({(post.organization_id, post.account_id, 1, True) for post in wanted})
        await self._copy("queue", "social_account", "organization_id id version is_connected", connected)
        long_ago = self._now - timedelta(days=1)
        await self._copy(
            "queue",
            "account_queue",
            "organization_id social_account_id schedule_version time_zone max_posts_per_day enabled search_from "
            "full_from full_until",
            [(post.organization_id, post.account_id, 0, "", 0, False, long_ago, long_ago, long_ago) for post in wanted],
        )
        await self._copy(
            "queue",
            "slot",
            "organization_id id draft_id social_account_id schedule_time state origin revision emission not_after "
            "time_zone content_revision traceparent create_time update_time next_emit_at",
            [
                (
                    post.organization_id,
                    post.slot_id,
                    post.draft_id,
                    post.account_id,
                    time,
                    "SCHEDULED",
                    "EXACT",
                    1,
                    0,
                    time + timedelta(days=1),
                    "",
                    1,
                    "",
                    self._now,
                    self._now,
                    time + REPEAT_DELAYS[0],
                )
                for post in wanted
            ],
        )
        await self._copy(
            "queue",
            "slot_target",
            "organization_id slot_id channel destination post_job_id job_version external_url error_message",
            [(post.organization_id, post.slot_id, _CHANNEL, "", "", 0, "", "") for post in wanted],
        )

    async def _drafts(self, wanted: Sequence[Post], time: datetime) -> None:
        content, digest = _content()
        await self._copy(
            "drafts",
            "draft",
            "organization_id id content content_digest targets revision version edit_version approved_digest "
            "approve_time approver state schedule_time create_time update_time",
            [
                (
                    post.organization_id,
                    post.draft_id,
                    content,
                    digest,
                    json.dumps([[post.account_id, _CHANNEL, ""]]),
                    1,
                    2,
                    2,
                    digest,
                    self._now,
                    "",
                    "SCHEDULED",
                    time,
                    self._now,
                    self._now,
                )
                for post in wanted
            ],
        )
        await self._copy(
            "drafts",
            "post_job",
            "organization_id draft_id id version social_account_id channel destination state schedule_time "
            "external_url error_message",
            [
                (
                    post.organization_id,
                    post.draft_id,
                    post.job_id,
                    2,
                    post.account_id,
                    _CHANNEL,
                    "",
                    "SCHEDULED",
                    time,
                    "",
                    "",
                )
                for post in wanted
            ],
        )

    async def _copy(self, service: str, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
        connection = await asyncpg.connect(self._urls[service])
        await connection.copy_records_to_table(table, records=rows, columns=columns.split())
        await connection.close()

    async def _execute(self, service: str, statement: str, *values: object) -> None:
        connection = await asyncpg.connect(self._urls[service])
        await connection.execute(statement, *values)
        await connection.close()


_LATER_SLOTS = """
    insert into slot (organization_id, id, draft_id, social_account_id, schedule_time, state, origin, revision,
        emission, not_after, time_zone, content_revision, traceparent, create_time, update_time, next_emit_at)
    select s.organization_id, s.id || '-' || n, s.draft_id || '-' || n, s.social_account_id,
        $2::timestamptz + n * interval '1 hour', 'SCHEDULED', 'EXACT', 1, 0,
        $2::timestamptz + n * interval '1 hour' + interval '1 day', '', 1, '', s.create_time, s.update_time,
        $2::timestamptz + n * interval '1 hour' + interval '4 seconds'
    from slot s cross join generate_series(1, $1::int) n
"""
_THEIR_TARGETS = """
    insert into slot_target (organization_id, slot_id, channel, destination, post_job_id, job_version, external_url,
        error_message)
    select s.organization_id, s.id, 'facebook', '', '', 0, '', '' from slot s
    on conflict do nothing
"""


def _content() -> tuple[bytes, str]:
    content = draft_pb2.DraftContent(text="A post of the benchmark.").SerializeToString(deterministic=True)
    return content, hashlib.sha256(content).hexdigest()
