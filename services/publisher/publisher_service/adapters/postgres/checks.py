"""The checks of a claim, in their order: the first that finds something decides.

The claim's statement and the explanation of a post job are both made of them. They are conditions on these rows: `t`
the job with its command and the gate of its account, `k` the content of its draft, `s` its account, `b` the bytes that
would be sent, `p` what the provider has prepared, and `u` the use of the daily cap, if there is one. What only the
explanation needs may also read `job`, the row of the job.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from publisher_service.domain.claim import Verdict
from publisher_service.domain.explanation import Beside


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that keeps a post back, and the verdict that it gives.

    `name` says in an explanation what is checked; `sentences` has its words. The rest is SQL for the explanation alone:
    whether the check concerns the post at all, what is compared, and when the check passes by itself.
    """

    verdict: Verdict | Beside
    condition: str
    name: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    applies: str = "true"
    clear_time: str = "cast(null as timestamptz)"


# Looked at once for all jobs: while no such hold is in force, no job looks for one. It is the condition of the index
# `hold_wide`, word for word.
_IS_ANY_WIDE: Final = """
    exists (select from hold where in_force and scope in ('ORGANIZATION', 'PROVIDER', 'BRAND', 'CAMPAIGN'))
"""
_HOLDS: Final = """
    from hold h
    where h.organization_id = t.organization_id and h.scope = '{scope}' and h.scope_id = {scope_id} and h.in_force
"""
# With a limit, so that each job looks its hold up: for another EXISTS the planner may read all holds and hash them.
_WIDE: Final = f"{_IS_ANY_WIDE} and (select true {_HOLDS} limit 1) is true"
# All of them have to end, so the last to do so is shown; the oldest, if several have no end.
_LAST: Final = f"(select {{column}} {_HOLDS} order by h.end_time desc nulls first, h.create_time, h.id limit 1)"
_LAST_END: Final = f"(select case when bool_and(h.end_time is not null) then max(h.end_time) end {_HOLDS})"
_OF_HOLD: Final = {
    "hold_id": "h.id",
    "reason": "h.reason",
    "holder": "h.holder",
    "since": "h.update_time",
    "end_time": "h.end_time",
}


def _hold(verdict: Verdict, name: str, condition: str, scope: str, scope_id: str, *, only: str = "true") -> Check:
    """Returns the check for holds of the scope that cover `scope_id` of the job, made `only` for some jobs.

    An explanation shows the last of them to end.
    """
    place = {"scope": scope, "scope_id": scope_id}
    values = {each: _LAST.format(column=column, **place) for each, column in _OF_HOLD.items()}
    return Check(
        verdict,
        f"{only} and {condition.format(**place)}",
        name,
        {"scope_id": scope_id, **values},
        applies=only,
        clear_time=_LAST_END.format(**place),
    )


_OF_DESTINATION: Final = """
    (select {column} from destination d
    where d.organization_id = t.organization_id and d.social_account_id = t.social_account_id
        and d.channel = t.channel and d.destination = t.destination)
"""
_HEALTH: Final = ("state_reason", "failures", "deactivate_time", "error_message")

_BEFORE: Final = """
    (select {column} from post_job b
    where b.organization_id = t.organization_id and b.draft_id = t.draft_id
        and b.social_account_id = t.social_account_id and b.channel = t.channel and b.destination = t.destination
        and b.part = t.part - 1)
"""

_IS_PREPARED: Final = "s.provider = any(cast(:preparing as text[]))"
# What was made of other bytes, or for another run, is never published.
_OF_THESE_BYTES: Final = "(p.content_digest, p.run) = (b.content_digest, t.next_run)"

CHECKS: Final = (
    Check(
        Verdict.UNREADABLE,
        "t.state not in ('PENDING', 'SCHEDULED', 'READY', 'SENDING', 'WAITING', 'BLOCKED', 'UNKNOWN', 'PUBLISHED',"
        " 'FAILED', 'MISSED', 'CANCELED', 'NEEDS_ATTENTION')",
        "STATE",
        {"state": "t.state"},
    ),
    Check(
        Verdict.STALE,
        '(t.command_slot_sequence, t.command_slot_id collate "C", t.command_slot_revision)'
        ' < (t.slot_sequence, t.slot_id collate "C", t.slot_revision)'
        " or (t.is_called and t.is_of_slot)",
        "NEWEST_SLOT",
        {"slot_id": "t.slot_id", "slot_revision": "t.slot_revision"},
        applies="t.slot_id <> ''",
    ),
    Check(
        Verdict.ENDED,
        "t.state in ('PUBLISHED', 'NEEDS_ATTENTION')"
        " or (t.ended and (t.command_slot_id, t.command_slot_revision) = (t.slot_id, t.slot_revision))",
        "RUN",
        {
            "run": "job.run",
            "state": "t.state",
            "state_reason": "t.state_reason",
            "publish_time": "job.publish_time",
            "external_url": "job.external_url",
            "error_reason": "job.error_reason",
            "error_message": "job.error_message",
        },
    ),
    # Nobody makes it due: an event that the part before is out does.
    Check(
        Verdict.PARENT_PENDING,
        "t.part > 0 and t.follows = ''",
        "PARENT",
        {
            "part": "case when t.part > 0 then t.part end",
            "before_post_job_id": _BEFORE.format(column="b.id"),
            "before_state": _BEFORE.format(column="b.state"),
            "before_reason": _BEFORE.format(column="coalesce(nullif(b.state_reason, ''), b.error_reason)"),
            "follows": "t.follows",
            # What people call them depends on the channel: the explanation knows.
            "name": "cast(null as text)",
            "before": "cast(null as text)",
        },
        applies="t.part > 0",
    ),
    Check(
        Verdict.OPEN,
        "t.state in ('SENDING', 'UNKNOWN')",
        "OPEN_ATTEMPT",
        {
            "state": "t.state",
            "attempt": "nullif(job.attempts, 0)",
            "start_time": "case when t.state in ('SENDING', 'UNKNOWN') then job.last_attempt_time end",
            "lease_end": "case t.state when 'SENDING' then coalesce(job.next_action_time, job.lease_end) end",
            "next_look_time": "case t.state when 'UNKNOWN' then job.next_action_time end",
            "unknown_until": "job.unknown_until",
            "error_reason": "case t.state when 'UNKNOWN' then job.error_reason end",
        },
    ),
    Check(
        Verdict.EARLY,
        "t.state = 'WAITING' and t.is_timed and t.next_action_time > :now",
        "WAIT",
        {"state_reason": "t.state_reason", "until": "t.next_action_time", "error_reason": "job.error_reason"},
        applies="t.state = 'WAITING' and t.is_timed",
        clear_time="t.next_action_time",
    ),
    Check(
        Verdict.MISSED,
        "t.command_not_after < :now",
        "LATEST_TIME",
        {"not_after": "job.not_after"},
        applies="job.not_after is not null",
    ),
    Check(
        Verdict.EXHAUSTED,
        "t.spent >= t.command_max_attempts",
        "ATTEMPTS",
        {"attempts": "t.spent", "max_attempts": "t.command_max_attempts", "error_reason": "job.error_reason"},
    ),
    Check(
        Verdict.CONTENT_PENDING,
        "not t.in_doubt and (k.version is null or k.version = 0 or k.revision < t.wanted_revision)",
        "CONTENT",
        {"revision": "nullif(k.revision, 0)", "wanted_revision": "nullif(t.wanted_revision, 0)"},
        applies="not t.in_doubt",
    ),
    Check(
        Verdict.WITHDRAWN,
        "b.revision < t.withdrawn_below",
        "NOT_WITHDRAWN",
        {"revision": "nullif(b.revision, 0)", "withdrawn_below": "nullif(t.withdrawn_below, 0)"},
    ),
    Check(
        Verdict.REMOVED,
        "t.id <> all (k.post_job_ids)",
        "TARGET",
        {"channel": "job.channel", "destination": "job.destination"},
    ),
    Check(
        Verdict.CONTENT_LOST,
        "b.content is null",
        "SENT_CONTENT",
        {"revision": "t.sent_revision"},
        applies="t.in_doubt",
    ),
    # A resend was approved when it was sent first; only its withdrawal forbids it.
    Check(
        Verdict.NOT_APPROVED,
        "not k.approved and b.revision = k.revision",
        "APPROVED",
        {"revision": "nullif(b.revision, 0)"},
        applies="b.revision = k.revision",
    ),
    Check(
        Verdict.ACCOUNT_NOT_CONNECTED,
        "not t.connected or s.id is null",
        "CONNECTION",
        {
            "social_account_id": "t.social_account_id",
            "provider": "s.provider",
            "state_reason": "s.state_reason",
            "disconnect_time": "s.disconnect_time",
            "error_message": "s.error_message",
        },
    ),
    Check(
        Verdict.CHANNEL_NOT_OFFERED,
        "t.channel <> all (s.channels)",
        "CHANNEL",
        {"channel": "t.channel", "offered": "array_to_string(s.channels, ', ')"},
    ),
    _hold(Verdict.ORGANIZATION_ON_HOLD, "ORGANIZATION_HOLD", _WIDE, "ORGANIZATION", "''"),
    _hold(Verdict.PROVIDER_ON_HOLD, "PROVIDER_HOLD", _WIDE, "PROVIDER", "s.provider"),
    _hold(Verdict.ACCOUNT_ON_HOLD, "ACCOUNT_HOLD", "t.held", "ACCOUNT", "t.social_account_id"),
    _hold(Verdict.BRAND_ON_HOLD, "BRAND_HOLD", _WIDE, "BRAND", "t.brand_id", only="t.brand_id <> ''"),
    _hold(Verdict.CAMPAIGN_ON_HOLD, "CAMPAIGN_HOLD", _WIDE, "CAMPAIGN", "t.campaign_id", only="t.campaign_id <> ''"),
    Check(Verdict.ACCOUNT_DISABLED, "not t.enabled", "ENABLED", {"social_account_id": "t.social_account_id"}),
    # A subquery rather than a join, so that a post to the feed of its account, as nearly all are, looks nothing up.
    Check(
        Verdict.DESTINATION_INACTIVE,
        "t.destination <> '' and " + _OF_DESTINATION.format(column="d.state = 'INACTIVE'"),
        "DESTINATION",
        {
            "channel": "job.channel",
            "destination": "job.destination",
            **{name: _OF_DESTINATION.format(column=f"d.{name}") for name in _HEALTH},
        },
        applies="t.destination <> ''",
    ),
    Check(
        Verdict.MEDIA_REFUSED,
        f"p.state = 'REFUSED' and {_OF_THESE_BYTES}",
        "MEDIA_ACCEPTED",
        {"error_reason": "p.error_reason", "error_message": "p.error_message"},
        applies=_IS_PREPARED,
    ),
    Check(
        Verdict.MEDIA,
        f"{_IS_PREPARED} and ({_OF_THESE_BYTES}"
        " and (p.state = 'REFUSED' or p.state = 'READY' and p.expire_time > :now)) is not true",
        "MEDIA",
        {"state": "p.state", "next_time": "p.next_time"},
        applies=_IS_PREPARED,
    ),
    # The claim computes the instants of windows and days that are over, and looks again.
    Check(
        Verdict.LIMITS_STALE,
        "t.open_until <= t.send_time"
        " or (t.is_limited and (t.send_time >= u.day_start and t.send_time < u.day_end) is not true)",
        "LIMITS",
    ),
    Check(
        Verdict.SEND_WINDOW,
        "t.send_time < t.open_from and not t.publish_now",
        "SEND_WINDOW",
        {"open_from": "t.open_from", "open_until": "t.open_until"},
        applies="t.open_from is not null and not t.publish_now",
        clear_time="t.open_from",
    ),
    # A run that has reserved its place keeps it.
    Check(
        Verdict.DAILY_CAP,
        "u.used >= u.cap and not u.is_reserved and not t.over_cap",
        "DAILY_CAP",
        {"action": "t.action", "used": "u.used", "cap": "u.cap", "day_end": "u.day_end"},
        applies="u.cap is not null and not t.over_cap",
        # A cap of 0 lets nothing go on the next day either.
        clear_time="case when u.cap > 0 then u.day_end end",
    ),
    Check(
        Verdict.PROVIDER_QUOTA,
        "t.closed_until > t.send_time",
        "PROVIDER_QUOTA",
        {"channel": "t.channel", "until": "t.closed_until"},
        applies="t.closed_until is not null",
        clear_time="t.closed_until",
    ),
    Check(
        Verdict.SPACING,
        "t.spaced_until > t.send_time and not t.publish_now",
        "SPACING",
        {"action": "t.action", "until": "t.spaced_until"},
        applies="t.spaced_until is not null and not t.publish_now",
        clear_time="t.spaced_until",
    ),
    Check(
        Verdict.ACCOUNT_BUSY,
        "t.open_job_id is not null",
        "ONE_IN_FLIGHT",
        {
            "post_job_id": "t.open_job_id",
            "lease_end": "(select coalesce(o.next_action_time, o.lease_end) from post_job o"
            " where o.organization_id = t.organization_id and o.id = t.open_job_id and o.state = 'SENDING')",
        },
    ),
    Check(
        Verdict.ACCOUNT_BUSY,
        "t.resume_time > :now",
        "ACCOUNT_PAUSE",
        {"resume_time": "t.resume_time", "failures": "case when t.failures > 0 then t.failures end"},
        clear_time="t.resume_time",
    ),
    # What PublishNow sends goes before the line.
    Check(
        Verdict.ACCOUNT_BUSY,
        "t.lined and not (:from_line or t.publish_now)",
        "LINE",
        {"posts_before": "cast(:posts_before as integer)"},
    ),
)

_BRANCHES = " ".join(f"when {each.condition} then '{each.verdict}'" for each in CHECKS)
OPINION: Final = f"case {_BRANCHES} else 'CLAIMED' end"
