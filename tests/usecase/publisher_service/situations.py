"""Situations of one post: the state of its job, and facts that may keep it back, each written as rows.

The facts are independent of each other, so any set of them makes a situation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from sqlalchemy import text

from publisher_service.domain.claim import Verdict
from publisher_service.domain.explanation import Beside
from publisher_service.domain.mark import Mark
from publisher_service.domain.post_job import Target
from publisher_service.domain.post_job import job_id as id_of_job
from testkit.clocks import START
from tests.usecase.publisher_service.replica import FAR, Replica

NOW = START

# What an explanation says of a job in this state if nothing else keeps the post back.
STATES: Mapping[str, tuple[str, str]] = {
    "no time": ("NO_TIME", "state = 'PENDING', schedule_time = null, not_after = null, next_action_time = null"),
    "not due": (
        "NOT_DUE",
        "state = 'SCHEDULED', schedule_time = :now + interval '1 hour', not_after = :now + interval '2 hours'",
    ),
    "due": ("CLAIMED", "state = 'SCHEDULED'"),
    "ready": ("CLAIMED", "state = 'READY', next_action_time = :now"),
    "published now": ("CLAIMED", "state = 'READY', next_action_time = :now, publish_now = true, called_run = 2"),
    "first in line": ("CLAIMED", "state = 'READY', state_reason = 'IN_LINE', next_action_time = not_after"),
    "in line, on hold": (
        "CLAIMED",
        "state = 'BLOCKED', state_reason = 'ACCOUNT_ON_HOLD', next_action_time = not_after",
    ),
    "blocked": ("CLAIMED", "state = 'BLOCKED', state_reason = 'NOT_APPROVED', next_action_time = not_after"),
    "waits": (
        "EARLY",
        (
            "state = 'WAITING', state_reason = 'RETRY', next_action_time = :now + interval '1 minute', attempts = 1,"
            " error_reason = 'CONNECT'"
        ),
    ),
    "has waited": ("CLAIMED", "state = 'WAITING', state_reason = 'RATE_LIMITED', next_action_time = :now"),
    "waits for its content": (
        "CLAIMED",
        "state = 'WAITING', state_reason = 'CONTENT_PENDING', next_action_time = not_after",
    ),
    "in doubt": (
        "CLAIMED",
        (
            "state = 'WAITING', state_reason = 'RETRY', next_action_time = :now, in_doubt = true, attempts = 1,"
            " content_revision = 1"
        ),
    ),
    "being sent": (
        "OPEN",
        "state = 'SENDING', lease_end = :now + interval '15 seconds', attempts = 1, last_attempt_time = :now",
    ),
    "unknown": (
        "OPEN",
        (
            "state = 'UNKNOWN', next_action_time = :now + interval '1 minute', in_doubt = true, attempts = 1,"
            " unknown_until = :now + interval '1 hour', error_reason = 'TIMEOUT', last_attempt_time = :now"
        ),
    ),
    "published": (
        "ENDED",
        "state = 'PUBLISHED', publish_time = :now, external_id = 'out', evidence_kind = 'PROVIDER_ID', attempts = 1",
    ),
    "failed": ("ENDED", "state = 'FAILED', error_reason = 'TOO_LONG', error_message = 'too long', attempts = 1"),
    "missed": ("ENDED", "state = 'MISSED', not_after = :now - interval '1 minute'"),
    "canceled": ("ENDED", "state = 'CANCELED', state_reason = 'TAKEN_BACK'"),
    "needs attention": ("ENDED", "state = 'NEEDS_ATTENTION', in_doubt = true, attempts = 1"),
    "unreadable": ("UNREADABLE", "state = 'ARRANGED'"),
    "comment of a post that is not out": (
        "PARENT_PENDING",
        "state = 'PENDING', part = 1, schedule_time = null, not_after = null, next_action_time = null",
    ),
    "comment": (
        "CLAIMED",
        (
            "state = 'READY', part = 1, follows = 'out', next_action_time = :now, called_run = 2, publish_now = true,"
            " over_cap = true"
        ),
    ),
}

_HOLD = """
    insert into hold (organization_id, id, scope, scope_id, revision, reason, holder, in_force, create_time,
        update_time)
    values ('acme', '{id}', '{scope}', '{scope_id}', 1, 'an [incident] of {{braces}}', '{holder}', true, :now, :now)
"""
_OTHER_POST = """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, next_action_time, lease_end, max_attempts,
        attempts, fence, content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason,
        error_message, target_month, traceparent, create_time, update_time)
    values ('acme', '{id}', '{id}', 'page-d0', 'facebook', '', '{state}', '{reason}', 1, 1, 'other', 1,
        :now - interval '{minutes} minutes', :now + interval '1 hour', {next_action}, :now + interval '9 seconds', 5, 1,
        1, 1, 0, '', '', '', '', '', '', '', :now, :now)
"""

# A window late each day.
_SCHEDULE = """
    insert into account_schedule (organization_id, social_account_id, version, deleted, time_zone, enabled,
        window_days, window_start, window_end)
    values ('acme', 'page-d0', 1, false, 'UTC', true, '{0,1,2,3,4,5,6}', '23:00', '23:30')
    on conflict do nothing
"""
_CAP = """
    insert into account_action (organization_id, social_account_id, action, cap, used, day_start, day_end)
    values ('acme', 'page-d0', 'POST', 3, {used}, cast(:now as date) - {day}, cast(:now as date) - {day} + 1)
    on conflict (organization_id, social_account_id, action) do update set
        used = excluded.used, day_start = excluded.day_start, day_end = excluded.day_end
"""

_CHANNELS = "update account_gate set closed_channels = jsonb_build_object({closed})"

# What keeps back a post that is due if nothing else does.
FACTS: Mapping[str, tuple[Verdict | Beside, tuple[str, ...]]] = {
    "not prepared": (Verdict.MEDIA, ()),
    "not preparable": (
        Verdict.MEDIA_REFUSED,
        (
            """
            insert into preparation
                (organization_id, post_job_id, social_account_id, provider, state, content_digest, run, error_reason)
            select 'acme', :id, 'page-d0', 'sandbox', 'REFUSED', b.content_digest,
                case when j.state in ('FAILED', 'MISSED', 'CANCELED') then j.run + 1 else j.run end, 'BAD_MEDIA'
            from post_job j join content b on b.draft_id = j.draft_id where j.id = :id
            """,
        ),
    ),
    "too late": (Verdict.MISSED, ("update post_job set not_after = :now - interval '1 second' where id = :id",)),
    "exhausted": (Verdict.EXHAUSTED, ("update post_job set attempts = 5 where id = :id",)),
    "no content": (Verdict.CONTENT_PENDING, ("delete from content",)),
    "unannounced": (Verdict.CONTENT_PENDING, ("update content set version = 0, revision = 0",)),
    "old content": (Verdict.CONTENT_PENDING, ("update post_job set wanted_revision = 2 where id = :id",)),
    "withdrawn": (Verdict.WITHDRAWN, ("update post_job set withdrawn_below = 2 where id = :id",)),
    "removed": (Verdict.REMOVED, ("update content set post_job_ids = '{}'",)),
    "unapproved": (Verdict.NOT_APPROVED, ("update content set approved = false",)),
    "disconnected": (
        Verdict.ACCOUNT_NOT_CONNECTED,
        (
            "update account_gate set connected = false",
            "update social_account set state = 'DISCONNECTED', state_reason = 'TOKEN_REFUSED', disconnect_time = :now",
        ),
    ),
    "no account": (Verdict.ACCOUNT_NOT_CONNECTED, ("delete from social_account",)),
    "held": (
        Verdict.ACCOUNT_ON_HOLD,
        (
            "update account_gate set held = true",
            _HOLD.format(id="first", scope="ACCOUNT", scope_id="page-d0", holder="ann"),
            _HOLD.format(id="second", scope="ACCOUNT", scope_id="page-d0", holder=""),
        ),
    ),
    "organization held": (
        Verdict.ORGANIZATION_ON_HOLD,
        (_HOLD.format(id="everything", scope="ORGANIZATION", scope_id="", holder="ann"),),
    ),
    "provider held": (
        Verdict.PROVIDER_ON_HOLD,
        (_HOLD.format(id="outage", scope="PROVIDER", scope_id="sandbox", holder="ann"),),
    ),
    "brand held": (
        Verdict.BRAND_ON_HOLD,
        (
            "update post_job set brand_id = 'shoes' where id = :id",
            _HOLD.format(id="shoes", scope="BRAND", scope_id="shoes", holder="ann"),
        ),
    ),
    "campaign held": (
        Verdict.CAMPAIGN_ON_HOLD,
        (
            "update post_job set campaign_id = 'spring' where id = :id",
            _HOLD.format(id="spring", scope="CAMPAIGN", scope_id="spring", holder="ann"),
            "update hold set end_time = :now + interval '1 hour' where id = 'spring'",
        ),
    ),
    "another brand held": (Verdict.CLAIMED, (_HOLD.format(id="hats", scope="BRAND", scope_id="hats", holder=""),)),
    "inactive destination": (
        Verdict.DESTINATION_INACTIVE,
        (
            """
            insert into destination (organization_id, social_account_id, channel, destination, state, state_reason,
                failures, error_message, deactivate_time, version)
            values ('acme', 'page-d0', 'facebook', 'team', 'INACTIVE', 'FAILURES', 5, 'not a member', :now, 1)
            """,
        ),
    ),
    "safe mode": (
        Verdict.SAFE_MODE,
        (
            """
            insert into safe_mode (number, active, reason, enter_time, step)
            values (1, true, 'MARK_AHEAD', :now, 'JOBS')
            """,
        ),
    ),
    "older database": (Verdict.OLDER, ()),
    "channel not offered": (
        Verdict.CHANNEL_NOT_OFFERED,
        ("update social_account set channels = '{instagram_feed, mastodon}'",),
    ),
    "disabled": (Verdict.ACCOUNT_DISABLED, ("update account_gate set enabled = false",)),
    "window is closed": (
        Verdict.SEND_WINDOW,
        (
            "update account_gate set open_from = :now + interval '2 hours', open_until = :now + interval '3 hours'",
            _SCHEDULE,
        ),
    ),
    "window is over": (
        Verdict.SEND_WINDOW,
        ("update account_gate set open_from = :now - interval '2 hours', open_until = :now", _SCHEDULE),
    ),
    "cap is used": (Verdict.DAILY_CAP, (_CAP.format(used=3, day=0), "update account_gate set limited = true")),
    "cap is free": (Verdict.CLAIMED, (_CAP.format(used=2, day=0), "update account_gate set limited = true")),
    "cap is used, and its place reserved": (
        Verdict.CLAIMED,
        (
            _CAP.format(used=3, day=0),
            "update account_gate set limited = true",
            """
            insert into reservation (organization_id, post_job_id, fence, run, social_account_id, action, reserve_time)
            select 'acme', :id, 90 + n, n, 'page-d0', 'POST', :now from generate_series(1, 2) n
            """,
        ),
    ),
    "cap is nothing": (
        Verdict.DAILY_CAP,
        (
            _CAP.format(used=0, day=0),
            "update account_gate set limited = true",
            "update account_action set cap = 0 where action = 'POST'",
        ),
    ),
    "cap of yesterday": (Verdict.CLAIMED, (_CAP.format(used=3, day=1), "update account_gate set limited = true")),
    "cap used overnight": (
        Verdict.DAILY_CAP,
        (
            _CAP.format(used=0, day=1),
            "update account_gate set limited = true",
            """
            insert into reservation (organization_id, post_job_id, fence, run, social_account_id, action, reserve_time)
            select 'acme', 'other', n, 1, 'page-d0', 'POST', :now from generate_series(1, 3) n
            """,
        ),
    ),
    "channel is closed": (
        Verdict.PROVIDER_QUOTA,
        (_CHANNELS.format(closed="'facebook', :now + interval '1 minute', 'instagram', :now + interval '1 hour'"),),
    ),
    "channel is open again": (Verdict.CLAIMED, (_CHANNELS.format(closed="'facebook', :now"),)),
    "another channel is closed": (
        Verdict.CLAIMED,
        (_CHANNELS.format(closed="'instagram', :now + interval '1 minute'"),),
    ),
    "spaced": (
        Verdict.SPACING,
        ("update account_gate set post_spacing = interval '10 minutes', last_post_time = :now - interval '1 minute'",),
    ),
    "another is out": (
        Verdict.ACCOUNT_BUSY,
        (
            _OTHER_POST.format(id="out", state="SENDING", reason="", minutes=1, next_action="null"),
            "update account_gate set open_job_id = 'out'",
        ),
    ),
    "paused": (Verdict.ACCOUNT_BUSY, ("update account_gate set resume_time = :now + interval '1 minute'",)),
    "behind others": (
        Verdict.ACCOUNT_BUSY,
        (
            *(
                _OTHER_POST.format(
                    id=f"other-{minutes}", state="READY", reason="IN_LINE", minutes=minutes, next_action=":now"
                )
                for minutes in (-30, 90, 91)
            ),
            "update account_gate set lined = true",
        ),
    ),
    "a line": (Verdict.ACCOUNT_BUSY, ("update account_gate set lined = true",)),
    "no room": (Verdict.PROVIDER_BUSY, ()),
    "crowded": (Verdict.PROVIDER_BUSY, ()),
    "another key": (Beside.CREDENTIALS_UNREADABLE, ("update social_account set credentials = 'sealed elsewhere'",)),
    "quota is used": (
        Verdict.PROVIDER_BUSY,
        ("insert into provider_quota (provider, closed_until) values ('sandbox', :now + interval '1 minute')",),
    ),
    "provider unknown": (Verdict.PROVIDER_BUSY, ("update social_account set provider = 'other'",)),
}
# These keep nothing back, but change what the others do.
BESIDE: Mapping[str, tuple[str, ...]] = {
    "is reserved": ("insert into reservation values ('acme', :id, 1, 2, 'page-d0', 'POST', :now)",),
    "over the cap": ("update post_job set called_run = run, publish_now = true, over_cap = true where id = :id",),
    "newer content": ("update content set revision = 2, content_digest = 'newer'",),
    "bytes are kept": ("insert into kept_content values ('acme', :id, 1, 'bytes', 'digest')",),
    "sent revision 2": ("update post_job set content_revision = 2 where id = :id",),
}

# With these the provider prepares posts.
PREPARED = frozenset({"not prepared", "not preparable"})
_CLEAR = (
    "truncate post_job, content, kept_content, social_account, account_gate, hold, destination, attempt,"
    " open_claim, outbox, safe_mode, claim_mark, account_schedule, account_action, reservation, preparation,"
    " provider_quota"
)
_SENT_TO = """
    with job as (update post_job set id = :id, destination = '{destination}')
    update content set post_job_ids = array[cast(:id as text)]
"""
_MOVE = "update post_job set {changes}"
_BASE = """
    update post_job set slot_id = 'slot', slot_revision = 1, schedule_time = :now - interval '1 hour',
        not_after = :now + interval '1 hour', run = 2
"""


@dataclass(frozen=True, slots=True)
class Situation:
    state: str = "due"
    facts: frozenset[str] = frozenset()

    async def arrange(self, replica: Replica) -> str:
        """Writes the rows, in a database that may hold those of an earlier situation, and returns the job's id."""
        await replica.write(_CLEAR)
        await replica.posts(1)
        destination = "team" if "inactive destination" in self.facts else ""
        target = Target(social_account_id="page-d0", channel="facebook", destination=destination)
        job_id = id_of_job("acme", "d0", target, int("part = 1" in STATES[self.state][1]))
        statements = [_SENT_TO.format(destination=destination), _BASE, _MOVE.format(changes=STATES[self.state][1])]
        for fact in sorted(self.facts):
            statements += FACTS[fact][1] if fact in FACTS else BESIDE[fact]
        names = {"now": NOW, "id": job_id}
        async with replica.database.transaction() as tx:
            for statement in statements:
                written = statement.replace(":now", "cast(:now as timestamptz)")
                given = {name: value for name, value in names.items() if f":{name}" in written}
                await tx.connection.execute(text(written), given)
        replica.lanes[:] = [
            replace(
                replica.lanes[0],
                room=0 if self.facts & {"no room", "quota is used"} else 1,
                crowded=("acme",) if "crowded" in self.facts else (),
                prepares=not PREPARED.isdisjoint(self.facts),
            )
        ]
        replica.marks.forget(replica.marks.known, before=FAR)
        if "older database" in self.facts:
            replica.marks.learn([Mark(process="other", number=7, time=NOW)])
        return job_id


situations = st.builds(
    Situation,
    st.sampled_from(sorted(STATES)),
    st.frozensets(st.sampled_from([*FACTS, *BESIDE]), max_size=4),
)
