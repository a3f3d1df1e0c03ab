"""A valid request for every RPC. Which RPCs exist, and which of their fields are ids, comes from the descriptors."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from postflow.drafts.v1 import draft_targets_service_pb2, drafts_service_pb2
from postflow.ops.v1 import operations_service_pb2
from postflow.publisher.v1 import (
    notification_service_pb2,
    publisher_admin_service_pb2,
    publisher_service_pb2,
    social_account_service_pb2,
)
from postflow.queue.v1 import queue_admin_service_pb2, queue_service_pb2
from postflow.rules.v1 import rules_pb2
from postflow.schedule.v1 import schedule_admin_service_pb2, schedule_service_pb2, timer_service_pb2
from servicekit.clock import SystemClock

SERVED_BY = {
    "postflow.drafts.v1": "drafts",
    "postflow.ops.v1": "queue",  # every other service has it, too
    "postflow.publisher.v1": "publisher",
    "postflow.queue.v1": "queue",
    "postflow.schedule.v1": "schedule",
}
FILES = (
    draft_targets_service_pb2,
    drafts_service_pb2,
    notification_service_pb2,
    operations_service_pb2,
    publisher_admin_service_pb2,
    publisher_service_pb2,
    queue_admin_service_pb2,
    queue_service_pb2,
    schedule_admin_service_pb2,
    schedule_service_pb2,
    social_account_service_pb2,
    timer_service_pb2,
)
METHODS: Mapping[str, MethodDescriptor] = {
    f"{service.full_name}/{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
# They take orders of thousands of slots.
LARGE_REQUESTS = frozenset({"postflow.queue.v1.QueueService/PlanQueue", "postflow.queue.v1.QueueService/ReorderQueue"})
# Operators and other services act for all organizations, unless they name one.
ACROSS_ORGANIZATIONS = frozenset(
    name
    for name in METHODS
    if "ScheduleAdminService/" in name
    or "PublisherAdminService/" in name
    or "Operations" in name
    or "DraftTargetsService/" in name
    or name.endswith("/ListChannels")
)
TOMORROW = (SystemClock().now() + timedelta(days=1)).isoformat()
TARGET = {"social_account_id": "page", "channel": "facebook"}
DRAFT = {"id": "d1", "content": {"text": "hello"}, "targets": [TARGET]}
SCHEDULE = {"social_account_id": "page", "time_zone": "Europe/Berlin", "enabled": True}
RULE = {
    "brand_id": "brand",
    "time_zone": "Europe/Berlin",
    "weekly_slots": [{"day_of_week": 1, "hour": 9}],
    "channels": ["facebook"],
}
TIMER = {"topic": "drafts.generate", "cron": "0 3 * * *"}
VALID: Mapping[str, Mapping[str, object]] = {
    "postflow.schedule.v1.ScheduleService/PutAccountSchedule": {"account_schedule": SCHEDULE},
    "postflow.schedule.v1.ScheduleService/GetAccountSchedule": {"social_account_id": "page"},
    "postflow.schedule.v1.ScheduleService/ListAccountSchedules": {},
    "postflow.schedule.v1.ScheduleService/DeleteAccountSchedule": {"social_account_id": "page"},
    "postflow.schedule.v1.ScheduleService/FindSlotTimes": {"social_account_id": "page"},
    "postflow.schedule.v1.ScheduleService/CheckSendWindow": {"social_account_id": "page"},
    "postflow.schedule.v1.ScheduleService/CreateScheduleRule": {"schedule_rule": RULE},
    "postflow.schedule.v1.ScheduleService/GetScheduleRule": {"schedule_rule_id": "rule"},
    "postflow.schedule.v1.ScheduleService/UpdateScheduleRule": {
        "schedule_rule": {**RULE, "id": "rule"},
        "update_mask": "name",
    },
    "postflow.schedule.v1.ScheduleService/DeleteScheduleRule": {"schedule_rule_id": "rule"},
    "postflow.schedule.v1.ScheduleService/ListScheduleRules": {},
    "postflow.schedule.v1.ScheduleService/ListRuleTargets": {"brand_id": "brand"},
    "postflow.schedule.v1.TimerService/CreateTimer": {"timer": TIMER},
    "postflow.schedule.v1.TimerService/GetTimer": {"timer_id": "t1"},
    "postflow.schedule.v1.TimerService/ListTimers": {},
    "postflow.schedule.v1.TimerService/PauseTimer": {"timer_id": "t1"},
    "postflow.schedule.v1.TimerService/ResumeTimer": {"timer_id": "t1"},
    "postflow.schedule.v1.TimerService/FireTimer": {"timer_id": "t1"},
    "postflow.schedule.v1.TimerService/DeleteTimer": {"timer_id": "t1"},
    "postflow.schedule.v1.ScheduleAdminService/ListZoneChanges": {},
    "postflow.schedule.v1.ScheduleAdminService/ApplyZoneChanges": {},
    "postflow.queue.v1.QueueService/AddToQueue": {"draft_id": "d1"},
    "postflow.queue.v1.QueueService/ScheduleAt": {"draft_id": "d1", "schedule_time": TOMORROW},
    "postflow.queue.v1.QueueService/BatchAddToQueue": {"items": [{"draft_id": "d1", "social_account_id": "page"}]},
    "postflow.queue.v1.QueueService/ExplainSlot": {"slot_id": "s1"},
    "postflow.queue.v1.QueueService/GetQueue": {"social_account_id": "page"},
    "postflow.queue.v1.QueueService/SkipNextSlot": {"social_account_id": "page"},
    "postflow.queue.v1.QueueService/ListQueueSlots": {},
    "postflow.queue.v1.QueueService/ReorderQueue": {"social_account_id": "page", "slot_ids": ["s1"], "etag": "1"},
    "postflow.queue.v1.QueueService/ShuffleQueue": {"social_account_id": "page"},
    "postflow.queue.v1.QueueService/ListDraftSlots": {"draft_ids": ["d1"]},
    "postflow.queue.v1.QueueService/MoveSlot": {"slot_id": "s1", "to_top": True},
    "postflow.queue.v1.QueueService/RemoveFromQueue": {"slot_id": "s1"},
    "postflow.queue.v1.QueueService/ClearQueue": {"social_account_id": "page"},
    "postflow.queue.v1.QueueService/PlanQueue": {"social_account_id": "page", "add": {"count": 1}},
    "postflow.queue.v1.QueueService/WatchQueue": {"social_account_id": "page"},
    "postflow.queue.v1.QueueAdminService/RedispatchSlots": {},
    "postflow.queue.v1.QueueService/PauseQueue": {"social_account_id": "page"},
    "postflow.queue.v1.QueueService/ResumeQueue": {"social_account_id": "page"},
    "postflow.queue.v1.QueueService/UpdateQueue": {"social_account_id": "page"},
    "postflow.drafts.v1.DraftsService/CreateDraft": {"draft": {**DRAFT, "id": ""}},
    "postflow.drafts.v1.DraftsService/GetDraft": {"draft_id": "d1"},
    "postflow.drafts.v1.DraftsService/UpdateDraft": {"draft": DRAFT, "update_mask": "content.text"},
    "postflow.drafts.v1.DraftsService/ApproveDraft": {"draft_id": "d1"},
    "postflow.drafts.v1.DraftsService/BatchCreateDrafts": {"drafts": [{"draft": {**DRAFT, "id": ""}}]},
    "postflow.drafts.v1.DraftsService/BatchApproveDrafts": {"drafts": [{"draft_id": "d1"}]},
    "postflow.drafts.v1.DraftTargetsService/FindDraftTargets": {
        "drafts": [{"organization_id": "org-bad", "draft_id": "d1"}],
    },
    "postflow.publisher.v1.PublisherService/GetPostJob": {"post_job_id": "j1"},
    "postflow.publisher.v1.PublisherService/ExplainPostJob": {"post_job_id": "j1"},
    "postflow.publisher.v1.PublisherService/ListPostJobs": {},
    "postflow.publisher.v1.PublisherService/WithdrawContent": {"draft_id": "d1", "below_revision": "2"},
    "postflow.publisher.v1.PublisherService/ResolvePostJob": {
        "post_job_id": "j1",
        "outcome": "RESOLVE_OUTCOME_NOT_PUBLISHED",
        "resolver": "ann",
    },
    "postflow.publisher.v1.PublisherService/CancelPostJobs": {
        "posts": [{"draft_id": "d1", "target": TARGET, "slot_id": "s1", "slot_revision": "1"}],
    },
    "postflow.publisher.v1.PublisherService/PublishNow": {
        "draft": {
            "draft_id": "d1",
            "version": "1",
            "revision": "1",
            "approved": True,
            "content_digest": hashlib.sha256(b"").hexdigest(),
            "targets": [TARGET],
        },
    },
    "postflow.publisher.v1.PublisherService/WatchPostJobs": {},
    "postflow.publisher.v1.PublisherService/RetryPostJob": {"post_job_id": "j1"},
    "postflow.publisher.v1.PublisherService/PutHold": {
        "hold_id": "h1",
        "scope": "HOLD_SCOPE_ACCOUNT",
        "scope_id": "page",
        "reason": "wrong price",
    },
    "postflow.publisher.v1.PublisherService/ReleaseHold": {"hold_id": "h1"},
    "postflow.publisher.v1.PublisherService/ListHolds": {},
    "postflow.publisher.v1.PublisherAdminService/GetSafeMode": {},
    "postflow.publisher.v1.PublisherAdminService/LeaveSafeMode": {"operator": "ann"},
    "postflow.publisher.v1.PublisherAdminService/ReplayPostJobEvents": {},
    "postflow.publisher.v1.PublisherService/InspectMedia": {"urls": ["https://pictures.example/1.jpg"]},
    "postflow.publisher.v1.PublisherService/ListChannels": {},
    "postflow.publisher.v1.PublisherService/ListDestinations": {},
    "postflow.publisher.v1.PublisherService/ValidateContent": {
        "content": {"text": "hello"},
        "targets": [{"social_account_id": "page", "channel": "facebook"}],
    },
    "postflow.publisher.v1.PublisherService/UpdateDestination": {
        "target": {"social_account_id": "page", "channel": "telegram", "destination": "@chat"},
        "state": "DESTINATION_STATE_INACTIVE",
    },
    "postflow.publisher.v1.SocialAccountService/ConnectAccount": {
        "provider": "sandbox",
        "external_account_id": "page-1",
        "credentials": {"access_token": "sandbox-token"},
    },
    "postflow.publisher.v1.SocialAccountService/StartConnect": {
        "provider": "sandbox",
        "redirect_uri": "http://localhost/connected",
    },
    "postflow.publisher.v1.SocialAccountService/FinishConnect": {"state": "some", "code": "some"},
    "postflow.publisher.v1.SocialAccountService/RefreshCredentials": {"social_account_id": "page"},
    "postflow.publisher.v1.SocialAccountService/DisconnectAccount": {"social_account_id": "page"},
    "postflow.publisher.v1.SocialAccountService/UpdateAccount": {"social_account_id": "page", "display_name": "Page"},
    "postflow.publisher.v1.SocialAccountService/GetAccount": {"social_account_id": "page"},
    "postflow.publisher.v1.SocialAccountService/ListAccounts": {},
    "postflow.publisher.v1.SocialAccountService/ListActivity": {"social_account_id": "page"},
    "postflow.publisher.v1.SocialAccountService/GetUsage": {"social_account_id": "page"},
    "postflow.publisher.v1.NotificationService/PutRecipients": {
        "recipient_list": {"recipients": [{"email": "ann@example.com", "role": "RECIPIENT_ROLE_ADMIN"}]},
    },
    "postflow.publisher.v1.NotificationService/GetRecipients": {},
    "postflow.publisher.v1.NotificationService/ListRecipients": {},
    "postflow.publisher.v1.NotificationService/CreateSubscription": {
        "subscription": {"url": "https://example.com/hook"},
    },
    "postflow.publisher.v1.NotificationService/GetSubscription": {"subscription_id": "w1"},
    "postflow.publisher.v1.NotificationService/ListSubscriptions": {},
    "postflow.publisher.v1.NotificationService/UpdateSubscription": {
        "subscription_id": "w1",
        "subscription": {"description": "the shop"},
        "update_mask": "description",
    },
    "postflow.publisher.v1.NotificationService/RotateSubscriptionSecret": {"subscription_id": "w1"},
    "postflow.publisher.v1.NotificationService/DeleteSubscription": {"subscription_id": "w1"},
    "postflow.publisher.v1.NotificationService/ListDeliveries": {},
    "postflow.publisher.v1.NotificationService/RetryDelivery": {"delivery_id": "n1"},
    "postflow.publisher.v1.NotificationService/SendTestNotification": {"subscription_id": "w1"},
    "postflow.ops.v1.OperationsService/GetStats": {},
    "postflow.ops.v1.OperationsService/ListDeadLetters": {},
    "postflow.ops.v1.OperationsService/RedriveDeadLetters": {"consumer": "queue-events"},
    "postflow.ops.v1.OperationsService/ArchiveDeadLetters": {"dead_letter_ids": ["letter"]},
}
"""A request of each method that only what a test puts into it makes invalid."""


def request_of(method: str, changes: Mapping[str, Any] | None = None) -> Message:
    """Makes the valid request of the method, with these fields changed."""
    made = message_factory.GetMessageClass(METHODS[method].input_type)()
    return json_format.ParseDict({"organization_id": "org-bad", **VALID[method], **(changes or {})}, made)


def id_fields(method: str) -> Iterator[str]:
    """Yields the path of every id field of a request and of its messages."""
    for field in METHODS[method].input_type.fields:
        if _rules(field).id:
            yield field.name
        elif field.message_type and not field.is_repeated and field.message_type.file.package.startswith("postflow"):
            yield from (f"{field.name}.{inner.name}" for inner in field.message_type.fields if _rules(inner).id)


def put_id(message: Message, path: str, value: str) -> str:
    """Puts the value into the field, or adds it if the field is repeated; returns the field's name in a refusal.

    A message that the request did not have gets the ids that it must have.
    """
    *parents, name = path.split(".")
    holder: Any = message
    for parent in parents:
        is_new = not holder.HasField(parent)
        holder = getattr(holder, parent)
        if is_new:
            _fill_ids(holder)
    if holder.DESCRIPTOR.fields_by_name[name].is_repeated:
        getattr(holder, name).append(value)
        return f"{path}[{len(getattr(holder, name)) - 1}]"
    setattr(holder, name, value)
    return path


def _fill_ids(message: Any) -> None:
    for field in message.DESCRIPTOR.fields:
        if _rules(field).required and _rules(field).id:
            setattr(message, field.name, "some")


def _rules(field: FieldDescriptor) -> rules_pb2.FieldRules:
    found: rules_pb2.FieldRules = field.GetOptions().Extensions[rules_pb2.rules]  # type: ignore[index]
    return found
