"""Facts that Publisher itself and Drafts announce, for those who are to be notified of them."""

from collections.abc import Mapping
from datetime import datetime

from civil.zones import UnknownZone, find_zone
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1 import drafts_events_pb2
from postflow.publisher.v1 import post_job_pb2, publisher_events_pb2
from publisher_service.domain.notification import Fact, Notification, NotificationKind
from publisher_service.domain.recipients import MOST_RECIPIENTS, Recipient, RecipientList, Role, is_email
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.timestamps import moment

_OF_POSTS: Mapping[int, NotificationKind] = {
    publisher_events_pb2.POST_JOB_EVENT_KIND_SUCCEEDED: NotificationKind.POST_PUBLISHED,
    publisher_events_pb2.POST_JOB_EVENT_KIND_FAILED: NotificationKind.POST_FAILED,
    publisher_events_pb2.POST_JOB_EVENT_KIND_MISSED: NotificationKind.POST_FAILED,
    publisher_events_pb2.POST_JOB_EVENT_KIND_NEEDS_ATTENTION: NotificationKind.POST_NEEDS_ATTENTION,
}
_TEXTS = ("external_id", "external_url", "error_reason", "error_message", "campaign_id")
_ROLES = {
    drafts_events_pb2.BRAND_ROLE_ADMIN: Role.ADMIN,
    drafts_events_pb2.BRAND_ROLE_EDITOR: Role.EDITOR,
}


def is_notable(message: publisher_events_pb2.PostJobChanged) -> bool:
    """Returns whether people are notified of such a change: of most changes of a post they are not."""
    return message.kind in _OF_POSTS


def post_notification(message: publisher_events_pb2.PostJobChanged) -> Notification:
    """Reads a change that `is_notable`. A replay announces a post as it stands, with the times of what happened."""
    job = message.post_job
    if not (message.organization_id and job.id):
        raise UnreadableMessage("a PostJobChanged lacks its organization or post job")
    kind = _OF_POSTS[message.kind]
    is_out = kind is NotificationKind.POST_PUBLISHED and job.HasField("publish_time")
    return Notification(
        organization_id=message.organization_id,
        kind=kind,
        subject_id=job.id,
        occasion=str(job.run),
        time=moment(job.publish_time if is_out else job.update_time),
        social_account_id=job.target.social_account_id,
        brand_id=job.brand_id,
        facts=_facts_of(job),
    )


def disconnection(message: publisher_events_pb2.SocialAccountDisconnected) -> Notification:
    """Reads the disconnection of an account. A later change of the disconnected account announces the same one."""
    account = message.social_account
    if not (message.organization_id and account.id):
        raise UnreadableMessage("a SocialAccountDisconnected lacks its organization or account")
    time = moment(account.disconnect_time if account.HasField("disconnect_time") else account.update_time)
    return _of_account(
        NotificationKind.ACCOUNT_DISCONNECTED,
        message.organization_id,
        account.id,
        occasion=written(time),
        time=time,
        facts={
            "provider": account.provider,
            "account_name": account.display_name,
            "reason": account.state_reason,
            # What a person has noted is for operators, not for everybody.
            "error_message": message.error_message if account.state_reason == "CREDENTIALS_REFUSED" else "",
        },
    )


def expiry(event: bus_pb2.Event, message: publisher_events_pb2.SocialAccountExpiresSoon) -> Notification:
    """Reads that an account expires soon. It may have been unchanged for months: the time is that of the event."""
    account = message.social_account
    if not (message.organization_id and account.id):
        raise UnreadableMessage("a SocialAccountExpiresSoon lacks its organization or account")
    return _expires_soon(
        message.organization_id,
        account.id,
        expire_time=moment(message.expire_time) if message.HasField("expire_time") else None,
        version=message.version,
        time=moment(event.occur_time),
        provider=account.provider,
        account_name=account.display_name,
        reason="REFRESH_FAILING" if message.is_failing else "",
    )


def _expires_soon(
    organization_id: str,
    account_id: str,
    *,
    expire_time: datetime | None,
    version: int,
    time: datetime,
    provider: str = "",
    account_name: str = "",
    reason: str = "",
) -> Notification:
    """Returns the notification of an account that expires soon: once for each expiry, or version without a time.

    `time` is that of the announcement.
    """
    return _of_account(
        NotificationKind.ACCOUNT_EXPIRES_SOON,
        organization_id,
        account_id,
        occasion=str(version) if expire_time is None else written(expire_time),
        time=time,
        facts={
            "provider": provider,
            "account_name": account_name,
            "reason": reason,
            "expire_time": "" if expire_time is None else written(expire_time),
        },
    )


def brand_recipients(message: drafts_events_pb2.BrandSaved) -> RecipientList:
    """Reads a brand. Raises UnreadableMessage if it has what no mail may have."""
    if not (message.organization_id and message.brand_id and message.version > 0):
        raise UnreadableMessage("a BrandSaved lacks its organization, brand or version")
    if len(message.recipients) > MOST_RECIPIENTS:
        raise UnreadableMessage("a BrandSaved has more recipients than any brand may have")
    recipients = {each.key: each for each in map(_recipient, message.recipients)}
    try:
        zone = find_zone(message.time_zone or "UTC").name
    except UnknownZone as error:
        raise UnreadableMessage(f"a BrandSaved that cannot be applied: {error}") from None
    return RecipientList(
        organization_id=message.organization_id,
        brand_id=message.brand_id,
        name=message.name,
        time_zone=zone,
        recipients=tuple(recipients.values()),
        announced_version=message.version,
    )


def written(time: datetime) -> str:
    """Returns the time as webhooks get it: RFC 3339 in UTC."""
    return time.isoformat().replace("+00:00", "Z")


def _of_account(
    kind: NotificationKind,
    organization_id: str,
    account_id: str,
    *,
    occasion: str,
    time: datetime,
    facts: Mapping[str, Fact],
) -> Notification:
    return Notification(
        organization_id=organization_id,
        kind=kind,
        subject_id=account_id,
        occasion=occasion,
        time=time,
        social_account_id=account_id,
        facts={"social_account_id": account_id, **facts},
    )


def _facts_of(job: post_job_pb2.PostJob) -> dict[str, Fact]:
    facts: dict[str, Fact] = {
        "post_job_id": job.id,
        "draft_id": job.draft_id,
        "run": job.run,
        "state": post_job_pb2.PostJobState.Name(job.state).removeprefix("POST_JOB_STATE_")
        if job.state in post_job_pb2.PostJobState.values()
        else "UNSPECIFIED",
        "social_account_id": job.target.social_account_id,
        "channel": job.target.channel,
    }
    if job.target.destination:
        facts["destination"] = job.target.destination
    if job.brand_id:
        facts["brand_id"] = job.brand_id
    for name in ("schedule_time", "publish_time"):
        if job.HasField(name):
            facts[name] = written(moment(getattr(job, name)))
    return facts | {name: text for name in _TEXTS if (text := getattr(job, name))}


def _recipient(message: drafts_events_pb2.BrandRecipient) -> Recipient:
    if not is_email(message.email) or not message.name.isprintable() or len(message.name) > 100:
        raise UnreadableMessage("a BrandSaved has a recipient who can get no mail")
    role = _ROLES.get(message.role)
    if role is None:
        raise UnreadableMessage("a BrandSaved has a recipient without a known role")
    return Recipient(email=message.email, name=message.name, role=role)
