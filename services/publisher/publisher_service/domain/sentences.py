"""The words of an explanation: what each check says when it passes, when it is open, and when it does not apply.

A text names values in braces. What stands in brackets is left out if one of its values is missing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from publisher_service.domain.destination import DestinationReason
from publisher_service.domain.post_job import JobState, Reason

Value = str | int | bool | datetime | None

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Wording:
    passed: str
    open: str
    idle: str = "it does not concern this post"
    # The value that chooses another text for an open check, and these texts.
    by: str = ""
    cases: Mapping[str, str] = field(default_factory=dict)


_NOTHING_TO_SEND: Final = "Nothing is to be sent, so it is not checked."

_HOLD: Final = "[: {reason}][ (hold {hold_id}][, put by {holder}][, until {end_time}][, since {since})]"

_SINCE_INACTIVE: Final = "[: {error_message}][ (inactive since {deactivate_time})]; UpdateDestination activates it"

# By the name of the check.
WORDINGS: Final[Mapping[str, Wording]] = {
    "NEWEST_DATABASE": Wording(
        "no process of Publisher knows a newer database",
        "the database is older than what Publisher has written: nothing is sent",
    ),
    "SAFE_MODE": Wording(
        "Publisher is not in safe mode",
        "Publisher has been in safe mode since {enter_time} ({reason}), because its database is, or may be, an older"
        " copy: nothing is sent until LeaveSafeMode",
    ),
    "NEWEST_VERSION": Wording(
        "nobody knows a newer version of the post than {version}",
        "a command knows a newer version of the post than {version}: the database is an older copy",
    ),
    "STATE": Wording(
        "this release knows the state {state}",
        "only a newer release knows the state {state}, and this release leaves the post to it",
    ),
    "NEWEST_SLOT": Wording(
        "no newer slot has the post",
        "slot {slot_id} has the post, and is newer",
        "the post has no slot",
    ),
    "RUN": Wording(
        "run {run} has not ended",
        "run {run} has ended as {state}[ {state_reason}]",
        by="state",
        cases={
            JobState.PUBLISHED: "it was published at {publish_time}[: {external_url}]",
            JobState.FAILED: "it failed ({error_reason})[: {error_message}]; RetryPostJob begins the next run",
            JobState.MISSED: "it was not sent before its latest time; RetryPostJob begins the next run",
            JobState.CANCELED: "it was canceled[ ({state_reason})] before it was sent; a new slot for this target"
            " of the draft begins the next run",
            JobState.NEEDS_ATTENTION: "nothing proves whether it is out, and it is not sent again: a person must look"
            " at the provider and say so with ResolvePostJob[ ({error_message})]",
        },
    ),
    "PARENT": Wording(
        "{before}, which it follows, is out",
        "it waits until {before} is out[, which is {before_state}][ ({before_reason})]",
        "it follows nothing",
        by="before_state",
        cases={
            JobState.PUBLISHED: "{before} is out: it is due in a moment",
            JobState.FAILED: "it waits until {before} is out, which has failed[ ({before_reason})]: RetryPostJob of"
            " {before_post_job_id} begins its next run",
            JobState.MISSED: "it waits until {before} is out, which was missed: RetryPostJob of {before_post_job_id}"
            " begins its next run",
            JobState.NEEDS_ATTENTION: "it waits until somebody says with ResolvePostJob whether {before} is out:"
            " {before_post_job_id}",
        },
    ),
    "OPEN_ATTEMPT": Wording(
        "no attempt is open",
        "an attempt is open",
        by="state",
        cases={
            JobState.SENDING: "it is being sent[: attempt {attempt}][, since {start_time}][; the lease ends at"
            " {lease_end}]",
            JobState.UNKNOWN: "it may be out: the outcome[ of attempt {attempt}] is not known[ ({error_reason})];"
            " the provider is asked at {next_look_time}[, and a person after {unknown_until}]",
        },
    ),
    "TIME": Wording("it has a time", "it has no time: no slot has the post"),
    "DUE": Wording("its time, {schedule_time}, has come", "its time, {schedule_time}, has not come", "it has no time"),
    "WAIT": Wording(
        "its wait ended at {until}",
        "it waits until {until}[ ({state_reason})]",
        "it does not wait for a time",
        by="state_reason",
        cases={
            Reason.RETRY: "the last attempt had no effect[ ({error_reason})]; the next one follows at {until}",
            Reason.RATE_LIMITED: "the provider has limited the rate, and takes posts again at {until}",
            Reason.CREDENTIALS_UNREADABLE: "Publisher could not read the credentials of the account, and tries again at"
            " {until}",
        },
    ),
    "LATEST_TIME": Wording(
        "it may be sent until {not_after}",
        "its latest time, {not_after}, is past: it is MISSED",
        "it has no latest time",
    ),
    "ATTEMPTS": Wording(
        "{attempts} of {max_attempts} attempts of the run are spent",
        "all {max_attempts} attempts of the run are spent[; the last one: {error_reason}]",
    ),
    "CONTENT": Wording(
        "its content is here: revision {revision} of the draft",
        "its content has not arrived[: revision {wanted_revision} is wanted][, revision {revision} is here]",
        "it is sent again as it was sent first",
    ),
    "NOT_WITHDRAWN": Wording(
        "its content is not withdrawn",
        "its content is withdrawn[: revision {revision} is below {withdrawn_below}]",
    ),
    "TARGET": Wording("it is a target of the draft", "the draft has lost this target: it is CANCELED"),
    "SENT_CONTENT": Wording(
        "the bytes that were sent first are kept",
        "the bytes that were sent first are lost, and no others may follow",
        "no earlier attempt of the run is in doubt",
    ),
    "APPROVED": Wording(
        "the content of the draft is approved[: revision {revision}]",
        "the content of the draft is not approved[: revision {revision}]",
        "it is sent again, and was approved when it was sent first",
    ),
    "CONNECTION": Wording(
        "account {social_account_id} is connected",
        "account {social_account_id} is not connected[ ({state_reason})][ since {disconnect_time}][: {error_message}]",
    ),
    "CHANNEL": Wording(
        "the account offers {channel}",
        "the account does not offer {channel}[, but {offered}]; UpdateAccount changes that",
    ),
    "ORGANIZATION_HOLD": Wording("no hold covers the organization", f"a hold covers the organization{_HOLD}"),
    "PROVIDER_HOLD": Wording(
        "no hold covers the accounts[ at {scope_id}]", f"a hold covers the accounts at {{scope_id}}{_HOLD}"
    ),
    "ACCOUNT_HOLD": Wording("no hold covers account {scope_id}", f"a hold covers account {{scope_id}}{_HOLD}"),
    "BRAND_HOLD": Wording(
        "no hold covers brand {scope_id}", f"a hold covers brand {{scope_id}}{_HOLD}", "the draft has no brand"
    ),
    "CAMPAIGN_HOLD": Wording(
        "no hold covers campaign {scope_id}",
        f"a hold covers campaign {{scope_id}}{_HOLD}",
        "the draft belongs to no campaign",
    ),
    "ENABLED": Wording(
        "the schedule of account {social_account_id} is enabled",
        "the schedule of account {social_account_id} is disabled",
    ),
    "LIMITS": Wording(
        "the present send window and local day of the account are computed",
        "the next send window or local day of the account is computed by the next claim, which then judges by it",
    ),
    "SEND_WINDOW": Wording(
        "the send window of the account is open until {open_until}",
        "the send window of the account opens at {open_from}",
        "no send window concerns it",
    ),
    "MEDIA_ACCEPTED": Wording(
        "the provider has not refused to prepare the post",
        "the provider refuses to prepare the post[: {error_reason}][, {error_message}]",
        "the provider prepares no posts",
    ),
    "MEDIA": Wording(
        "the provider has prepared the post",
        "the provider has not prepared the post yet[; it is asked again at {next_time}]",
        "the provider prepares no posts",
    ),
    "DAILY_CAP": Wording(
        "{used} of the daily cap of {cap} are used ({action})",
        "{used} of the daily cap of {cap} are used ({action}): it waits until {day_end}",
        "no daily cap concerns it",
        by="cap",
        cases={"0": "the daily cap is 0 ({action}): it waits until UpdateAccount raises it"},
    ),
    "PROVIDER_QUOTA": Wording(
        "the provider has taken posts of the account on {channel} again since {until}",
        "the provider takes no more posts of the account on {channel} for now: it waits until {until}",
        "the provider has not closed the channel",
    ),
    "SPACING": Wording(
        "the account has sent nothing of the kind since {until}",
        "the account has sent something of the kind a short while ago: it waits until {until}",
        "no spacing concerns it",
    ),
    "DESTINATION": Wording(
        "destination {destination} takes posts",
        f"destination {{destination}} is inactive{_SINCE_INACTIVE}",
        "it goes to the account's own feed",
        by="state_reason",
        cases={
            DestinationReason.FAILURES: f"destination {{destination}} has refused {{failures}} posts in a row"
            f"{_SINCE_INACTIVE}",
            DestinationReason.BLOCKED_BY_PEER: f"destination {{destination}} has blocked the account{_SINCE_INACTIVE}",
        },
    ),
    "ONE_IN_FLIGHT": Wording(
        "no other post of the account is being sent",
        "another post of the account, {post_job_id}, is being sent[; its lease ends at {lease_end}]",
    ),
    "ACCOUNT_PAUSE": Wording(
        "the account need not wait for the provider",
        "the account waits until {resume_time}: the provider has asked for it, or could not be reached"
        "[ ({failures} requests in a row)]",
    ),
    "LINE": Wording(
        "no other post of the account goes first",
        "other posts of the account go first[: {posts_before}]",
        by="posts_before",
        cases={"0": "it joins the line of the account, in which no other post goes before it"},
    ),
    "PROVIDER_ROOM": Wording(
        "there is room for posts to {provider}",
        "this process has no room for more posts to {provider} at the moment"
        "[: the provider takes none before {closed_until}]",
        "the provider is not known",
    ),
    "CREDENTIALS": Wording(
        "the credentials of the account can be read",
        "no key of this process opens the credentials of the account",
        "there are no credentials",
    ),
}

_GOING: Final = {
    JobState.SCHEDULED: "nothing keeps it back: it is sent as soon as its command has come",
    JobState.WAITING: "nothing keeps it back: its wait is over, and it is sent at once",
    JobState.BLOCKED: "nothing keeps it back any longer: it is sent as soon as it is released",
}


def passed_sentence(name: str, values: Mapping[str, Value]) -> str:
    return _sentence(WORDINGS[name].passed, values)


def open_sentence(name: str, values: Mapping[str, Value]) -> str:
    wording = WORDINGS[name]
    return _sentence(wording.cases.get(str(values.get(wording.by)), wording.open), values)


def idle_sentence(name: str) -> str:
    """Says why a check does not apply, though the others do."""
    return _sentence(WORDINGS[name].idle, {})


def part_sentence(name: str, sentence: str) -> str:
    """Says of which part a sentence is about a job."""
    return f"{name[:1].upper()}{name[1:]}: {sentence[:1].lower()}{sentence[1:]}"


def over_sentence() -> str:
    """Says why no further check applies."""
    return _NOTHING_TO_SEND


def going_sentence(state: str) -> str:
    """Says what comes next when every check passes."""
    return _sentence(_GOING.get(JobState(state), "nothing keeps it back: it is sent at once"), {})


def _sentence(text: str, values: Mapping[str, Value]) -> str:
    known = {name: _word(value) for name, value in values.items() if value not in (None, "")}

    def optional(found: re.Match[str]) -> str:
        return found[1] if set(_NAME.findall(found[1])) <= known.keys() else ""

    filled = _OPTIONAL.sub(optional, text).format_map(known)
    return filled[:1].upper() + filled[1:].removesuffix(".") + "."


def _word(value: Value) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)
