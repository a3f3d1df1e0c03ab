"""Bad input, on every method of every service: a code, a reason, and the field at fault, if there is one.

The first tests are made from the descriptors, so that a method that is added is tested automatically.
"""

from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from devstack.stack import Stack
from servicekit.faults import Fault
from servicekit.rpc.status import fault_from_error
from testkit.stack.requests import (
    ACROSS_ORGANIZATIONS,
    DRAFT,
    LARGE_REQUESTS,
    METHODS,
    RULE,
    SCHEDULE,
    SERVED_BY,
    TARGET,
    TIMER,
    TOMORROW,
    VALID,
    id_fields,
    put_id,
    request_of,
)
from testkit.stack.tenant import Clients

MALFORMED_ID = "no such/id"
TOO_LONG_ID = "x" * 65
# Without a safe mode there is none to leave.
REFUSED = {"postflow.publisher.v1.PublisherAdminService/LeaveSafeMode"}


async def refusal(clients: Clients, method: str, request: bytes) -> grpc.aio.AioRpcError:
    channel = clients.channels[SERVED_BY[METHODS[method].containing_service.file.package]]
    call: Any = channel.unary_unary(f"/{method}", request_serializer=None, response_deserializer=None)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(request)
    return refused.value


async def answer(clients: Clients, method: str, request: Message) -> bytes:
    channel = clients.channels[SERVED_BY[METHODS[method].containing_service.file.package]]
    call: Any = channel.unary_unary(f"/{method}", request_serializer=None, response_deserializer=None)
    encoded: bytes = await call(request.SerializeToString())
    return encoded


async def fault(clients: Clients, method: str, request: Message) -> tuple[grpc.StatusCode, Fault]:
    error = await refusal(clients, method, request.SerializeToString())
    return error.code(), fault_from_error(error)


async def served_by(stack: Stack, service: str) -> list[str]:
    """Lists the names of the services that this process serves, by reflection."""
    async with grpc.aio.insecure_channel(stack.targets[service]) as channel:
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        )
        answers = [answer async for answer in call]
    return [each.name for each in answers[0].list_services_response.service]


async def test_every_served_method_has_a_valid_request(stack: Stack) -> None:
    assert VALID.keys() == METHODS.keys()
    each = {service: await served_by(stack, service) for service in stack.targets}
    assert all("postflow.ops.v1.OperationsService" in names for names in each.values())
    served = {name for names in each.values() for name in names}
    assert {name for name in served if name.startswith("postflow.")} == {
        method.containing_service.full_name for method in METHODS.values()
    }


@pytest.mark.parametrize("method", METHODS)
async def test_malformed_bytes_are_refused(clients: Clients, method: str) -> None:
    error = await refusal(clients, method, b"\xff\xff\xff not a protobuf message")
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert fault_from_error(error).reason == "MALFORMED_REQUEST"
    assert "protobuf" not in (error.details() or "").lower()


@pytest.mark.parametrize("method", sorted(METHODS.keys() - LARGE_REQUESTS))
async def test_a_request_over_256_kib_is_refused(clients: Clients, stack: Stack, method: str) -> None:
    # Not over our own channels, which refuse to send it.
    target = stack.targets[SERVED_BY[METHODS[method].containing_service.file.package]]
    async with grpc.aio.insecure_channel(target) as channel:
        call: Any = channel.unary_unary(f"/{method}", request_serializer=None, response_deserializer=None)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(request_of(method).SerializeToString() + b"\xfa\x7f" + _length(262_144) + b"x" * 262_144)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert fault_from_error(refused.value).reason == "REQUEST_TOO_LARGE"


@pytest.mark.parametrize("method", sorted(METHODS.keys() - ACROSS_ORGANIZATIONS))
async def test_a_request_without_an_organization_is_refused(clients: Clients, method: str) -> None:
    code, refused = await fault(clients, method, request_of(method, {"organization_id": ""}))
    assert (code, refused.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert [violation.field for violation in refused.violations] == ["organization_id"]


@pytest.mark.parametrize("method", sorted(ACROSS_ORGANIZATIONS - REFUSED))
async def test_operators_may_leave_the_organization_out(clients: Clients, method: str) -> None:
    await answer(clients, method, request_of(method, {"organization_id": ""}))


@pytest.mark.parametrize("value", [MALFORMED_ID, TOO_LONG_ID, "ünïcode", "nul\0"])
@pytest.mark.parametrize("method", METHODS)
async def test_malformed_ids_are_refused_in_every_field(clients: Clients, method: str, value: str) -> None:
    paths = list(id_fields(method))
    assert "organization_id" in paths
    for path in paths:
        request = request_of(method)
        field = put_id(request, path, value)
        code, refused = await fault(clients, method, request)
        assert (code, refused.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"), path
        assert [violation.field for violation in refused.violations] == [field]
        assert value not in refused.message


SCHEDULES = "postflow.schedule.v1.ScheduleService"
TIMERS = "postflow.schedule.v1.TimerService"
SCHEDULE_ADMIN = "postflow.schedule.v1.ScheduleAdminService"
QUEUES = "postflow.queue.v1.QueueService"
DRAFTS = "postflow.drafts.v1.DraftsService"
PUBLISHERS = "postflow.publisher.v1.PublisherService"
ACCOUNTS = "postflow.publisher.v1.SocialAccountService"


def _schedule(**changes: object) -> dict[str, object]:
    return {"account_schedule": {**SCHEDULE, **changes}}


def _rule(**changes: object) -> dict[str, object]:
    return {"schedule_rule": {**RULE, **changes}}


def _rrule(rrule: str, **changes: object) -> dict[str, object]:
    return _rule(weekly_slots=[], rrule=rrule, **changes)


def _timer(**changes: object) -> dict[str, object]:
    return {"timer": {**TIMER, **changes}}


def _once(**changes: object) -> dict[str, object]:
    return {"timer": {"topic": "drafts.generate", "fire_time": TOMORROW, **changes}}


def _draft(**changes: object) -> dict[str, object]:
    return {"draft": {**DRAFT, "id": "", **changes}}


@pytest.mark.parametrize(
    ("method", "changes", "reason", "field"),
    [
        # zones
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(time_zone="Europe/Atlantis"), None, "account_schedule.time_zone"),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(time_zone="localtime"), None, "account_schedule.time_zone"),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(time_zone="../etc/passwd"), None, "account_schedule.time_zone"),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(time_zone="Factory"), None, "account_schedule.time_zone"),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(time_zone="x" * 65), None, "account_schedule.time_zone"),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(time_zone="x" * 300), None, "account_schedule.time_zone"),
        # civil times
        (
            f"{SCHEDULES}/PutAccountSchedule",
            _schedule(weekly_slots=[{"day_of_week": 1, "hour": 24}]),
            None,
            "account_schedule.weekly_slots[0].hour",
        ),
        (
            f"{SCHEDULES}/PutAccountSchedule",
            _schedule(weekly_slots=[{"day_of_week": 9}]),
            None,
            "account_schedule.weekly_slots[0].day_of_week",
        ),
        (
            f"{SCHEDULES}/PutAccountSchedule",
            _schedule(weekly_slots=[{"day_of_week": 1, "hour": 9}, {"day_of_week": 1, "hour": 9}]),
            None,
            "account_schedule.weekly_slots[1]",
        ),
        (f"{SCHEDULES}/FindSlotTimes", {"count": 1001}, None, "count"),
        (f"{SCHEDULES}/FindSlotTimes", {"count": -1}, None, "count"),
        (
            f"{SCHEDULES}/FindSlotTimes",
            {"after": "2026-01-02T00:00:00Z", "before": "2026-01-01T00:00:00Z"},
            None,
            "before",
        ),
        # windows and spacing
        (
            f"{SCHEDULES}/PutAccountSchedule",
            _schedule(send_window={"days_of_week": [1], "start": {"hour": 18}, "end": {"hour": 9}}),
            None,
            "account_schedule.send_window.end",
        ),
        (
            f"{SCHEDULES}/PutAccountSchedule",
            _schedule(send_window={"days_of_week": [1, 1]}),
            None,
            "account_schedule.send_window.days_of_week[1]",
        ),
        (
            f"{SCHEDULES}/PutAccountSchedule",
            _schedule(send_window={"start": {"hour": 9}}),
            None,
            "account_schedule.send_window.days_of_week",
        ),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(min_spacing="1.5s"), None, "account_schedule.min_spacing"),
        (f"{SCHEDULES}/PutAccountSchedule", _schedule(min_spacing="86401s"), None, "account_schedule.min_spacing"),
        # instants
        (f"{SCHEDULES}/FindSlotTimes", {"after": "9999-01-01T00:00:00Z"}, None, "after"),
        (f"{SCHEDULES}/CheckSendWindow", {"time": "0001-01-01T00:00:00Z"}, None, "time"),
        (f"{QUEUES}/ScheduleAt", {"schedule_time": "2001-01-01T00:00:00Z"}, None, "schedule_time"),
        (f"{QUEUES}/ScheduleAt", {"schedule_time": "9999-01-01T00:00:00Z"}, None, "schedule_time"),
        (f"{QUEUES}/ScheduleAt", {"schedule_time": None}, None, "schedule_time"),
        (f"{SCHEDULES}/ListRuleTargets", {"after": "9999-01-01T00:00:00Z"}, None, "after"),
        (f"{SCHEDULES}/ListRuleTargets", {"horizon": "0.5s"}, None, "horizon"),
        (f"{SCHEDULES}/ListRuleTargets", {"horizon": "31622401s"}, None, "horizon"),
        # recurrences
        (f"{SCHEDULES}/CreateScheduleRule", _rule(weekly_slots=[]), None, "schedule_rule.weekly_slots"),
        (f"{SCHEDULES}/CreateScheduleRule", _rule(rrule="FREQ=DAILY"), None, "schedule_rule.rrule"),
        (f"{SCHEDULES}/CreateScheduleRule", _rrule("FREQ=SECONDLY"), None, "schedule_rule.rrule"),
        (f"{SCHEDULES}/CreateScheduleRule", _rrule("FREQ=DAILY"), None, "schedule_rule.start_time"),
        (
            f"{SCHEDULES}/CreateScheduleRule",
            _rrule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", start_time={"hour": 9}),
            None,
            "schedule_rule.rrule",
        ),
        (f"{SCHEDULES}/CreateScheduleRule", _rule(start_time={"hour": 9}), None, "schedule_rule.start_time"),
        # timers
        (f"{TIMERS}/CreateTimer", {"timer": {"topic": "drafts.generate"}}, None, "timer.schedule"),
        (f"{TIMERS}/CreateTimer", {"timer": None}, None, "timer"),
        (f"{TIMERS}/CreateTimer", _timer(cron=""), None, "timer.cron"),
        (f"{TIMERS}/CreateTimer", _timer(cron="0 3 * *"), None, "timer.cron"),
        (f"{TIMERS}/CreateTimer", _timer(cron="0 24 * * *"), None, "timer.cron"),
        (f"{TIMERS}/CreateTimer", _timer(cron="0 0 30 2 *"), None, "timer.cron"),
        (f"{TIMERS}/CreateTimer", _timer(cron="0 " * 200), None, "timer.cron"),
        (f"{TIMERS}/CreateTimer", _timer(cron="CRON_TZ=localtime @daily"), None, "timer.cron"),
        (f"{TIMERS}/CreateTimer", _timer(cron="TZ=UTC @daily", time_zone="UTC"), None, "timer.time_zone"),
        (f"{TIMERS}/CreateTimer", _timer(time_zone="Factory"), "UNKNOWN_TIME_ZONE", "timer.time_zone"),
        (f"{TIMERS}/CreateTimer", _timer(time_zone="x" * 300), None, "timer.time_zone"),
        (f"{TIMERS}/CreateTimer", _timer(repeat_until="2001-01-01T00:00:00Z"), None, "timer.repeat_until"),
        (f"{TIMERS}/CreateTimer", _timer(dst_policy=9), None, "timer.dst_policy"),
        (f"{TIMERS}/CreateTimer", _timer(misfire_policy=9), None, "timer.misfire_policy"),
        (f"{TIMERS}/CreateTimer", _timer(catch_up_interval="1s"), None, "timer.catch_up_interval"),
        (f"{TIMERS}/CreateTimer", _timer(skip_after="60s"), None, "timer.skip_after"),
        (f"{TIMERS}/CreateTimer", _timer(topic=""), None, "timer.topic"),
        (f"{TIMERS}/CreateTimer", _timer(topic="Drafts!"), None, "timer.topic"),
        (f"{TIMERS}/CreateTimer", _timer(payload="AAAA" * 30_000), None, "timer.payload"),
        (f"{TIMERS}/CreateTimer", _once(fire_time="9999-01-01T00:00:00Z"), None, "timer.fire_time"),
        (f"{TIMERS}/CreateTimer", _once(time_zone="UTC"), None, "timer.time_zone"),
        (f"{TIMERS}/CreateTimer", _once(dst_policy=2), None, "timer.dst_policy"),
        (f"{TIMERS}/CreateTimer", _once(repeat_until=TOMORROW), None, "timer.repeat_until"),
        (f"{TIMERS}/CreateTimer", {"timer": {"topic": "t", "delay": "-1s"}}, None, "timer.delay"),
        (f"{TIMERS}/CreateTimer", {"timer": {"topic": "t", "delay": "315576001s"}}, None, "timer.delay"),
        # dates
        (f"{SCHEDULES}/CreateScheduleRule", _rule(start_date="2026-02-30"), None, "schedule_rule.start_date"),
        (
            f"{SCHEDULES}/CreateScheduleRule",
            _rule(start_date="2026-03-02", end_date="2026-03-01"),
            None,
            "schedule_rule.end_date",
        ),
        (
            f"{SCHEDULES}/CreateScheduleRule",
            _rule(excluded_dates=["2026-03-02", "1 May"]),
            None,
            "schedule_rule.excluded_dates[1]",
        ),
        # brands
        (f"{SCHEDULES}/CreateScheduleRule", _rule(brand_id=""), None, "schedule_rule.brand_id"),
        (f"{SCHEDULES}/UpdateScheduleRule", {"update_mask": "brandId"}, None, "update_mask"),
        # channels
        (f"{SCHEDULES}/CreateScheduleRule", _rule(channels=[]), None, "schedule_rule.channels"),
        (
            f"{SCHEDULES}/CreateScheduleRule",
            _rule(channels=["facebook", "fax"]),
            "UNKNOWN_CHANNEL",
            "schedule_rule.channels[1]",
        ),
        (
            f"{DRAFTS}/CreateDraft",
            _draft(targets=[{**TARGET, "channel": "carrier_pigeon"}]),
            "UNKNOWN_CHANNEL",
            "draft.targets[0].channel",
        ),
        (
            f"{DRAFTS}/CreateDraft",
            _draft(content={"text": "x", "channel_texts": [{"channel": "smoke", "text": "y"}]}),
            "UNKNOWN_CHANNEL",
            "draft.content.channel_texts[0].channel",
        ),
        (f"{ACCOUNTS}/ConnectAccount", {"channels": ["facebook", "fax"]}, "UNKNOWN_CHANNEL", "channels[1]"),
        # update masks
        (f"{DRAFTS}/UpdateDraft", {"update_mask": "content.colour"}, None, "update_mask"),
        (f"{DRAFTS}/UpdateDraft", {"update_mask": "state"}, None, "update_mask"),
        (f"{DRAFTS}/UpdateDraft", {"update_mask": ""}, None, "update_mask"),
        (f"{DRAFTS}/UpdateDraft", {"update_mask": None}, None, "update_mask"),
        (f"{SCHEDULES}/UpdateScheduleRule", {"update_mask": "colour"}, None, "update_mask"),
        (f"{SCHEDULES}/UpdateScheduleRule", {"update_mask": ""}, None, "update_mask"),
        (f"{SCHEDULES}/UpdateScheduleRule", {"update_mask": None}, None, "update_mask"),
        # pages
        (f"{SCHEDULES}/ListAccountSchedules", {"page_size": -1}, None, "page_size"),
        (f"{SCHEDULES}/ListAccountSchedules", {"page_token": "made up"}, None, "page_token"),
        (f"{QUEUES}/ListQueueSlots", {"page_size": 201}, None, "page_size"),
        (f"{QUEUES}/ListQueueSlots", {"page_token": "made up"}, None, "page_token"),
        (f"{PUBLISHERS}/ListPostJobs", {"page_size": -1}, None, "page_size"),
        (f"{PUBLISHERS}/ListPostJobs", {"page_token": "made up"}, None, "page_token"),
        (f"{SCHEDULE_ADMIN}/ListZoneChanges", {"page_size": -1}, None, "page_size"),
        (f"{SCHEDULE_ADMIN}/ListZoneChanges", {"page_token": "made up"}, None, "page_token"),
        (f"{SCHEDULES}/ListScheduleRules", {"page_size": -1}, None, "page_size"),
        (f"{SCHEDULES}/ListScheduleRules", {"page_token": "made up"}, None, "page_token"),
        (f"{TIMERS}/ListTimers", {"page_size": -1}, None, "page_size"),
        (f"{TIMERS}/ListTimers", {"page_token": "made up"}, None, "page_token"),
        (f"{SCHEDULES}/ListRuleTargets", {"page_size": -1}, None, "page_size"),
        (f"{SCHEDULES}/ListRuleTargets", {"page_token": "made up"}, None, "page_token"),
        # states
        (f"{QUEUES}/ListQueueSlots", {"states": [99]}, None, "states[0]"),
        (f"{PUBLISHERS}/ListPostJobs", {"states": [99]}, None, "states[0]"),
        (f"{TIMERS}/ListTimers", {"state": 99}, None, "state"),
        # texts and digests
        (f"{DRAFTS}/CreateDraft", _draft(content={"text": "nul\0"}), None, "draft.content.text"),
        (f"{DRAFTS}/CreateDraft", _draft(content={"text": "x" * 70_001}), None, "draft.content.text"),
        (f"{DRAFTS}/ApproveDraft", {"content_digest": "not hex"}, None, "content_digest"),
        # accounts
        (f"{ACCOUNTS}/ConnectAccount", {"provider": "myspace"}, None, "provider"),
        (f"{ACCOUNTS}/ConnectAccount", {"credentials": {}}, None, "credentials.access_token"),
        (f"{PUBLISHERS}/WithdrawContent", {"below_revision": "0"}, None, "below_revision"),
    ],
)
async def test_a_wrong_field_is_named(
    clients: Clients, method: str, changes: dict[str, object], reason: str | None, field: str
) -> None:
    code, refused = await fault(clients, method, request_of(method, changes))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert [violation.field for violation in refused.violations] == [field]
    assert refused.metadata["field"] == field
    assert refused.reason == (reason or refused.reason)
    assert all(violation.description for violation in refused.violations)


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (f"{DRAFTS}/GetDraft", "DRAFT_NOT_FOUND"),
        (f"{DRAFTS}/UpdateDraft", "DRAFT_NOT_FOUND"),
        (f"{DRAFTS}/ApproveDraft", "DRAFT_NOT_FOUND"),
        (f"{QUEUES}/AddToQueue", "DRAFT_NOT_FOUND"),
        (f"{QUEUES}/ScheduleAt", "DRAFT_NOT_FOUND"),
        (f"{SCHEDULES}/GetAccountSchedule", "SCHEDULE_NOT_FOUND"),
        (f"{SCHEDULES}/DeleteAccountSchedule", "SCHEDULE_NOT_FOUND"),
        (f"{SCHEDULES}/FindSlotTimes", "SCHEDULE_NOT_FOUND"),
        (f"{SCHEDULES}/CheckSendWindow", "SCHEDULE_NOT_FOUND"),
        (f"{SCHEDULES}/GetScheduleRule", "SCHEDULE_RULE_NOT_FOUND"),
        (f"{SCHEDULES}/UpdateScheduleRule", "SCHEDULE_RULE_NOT_FOUND"),
        (f"{SCHEDULES}/DeleteScheduleRule", "SCHEDULE_RULE_NOT_FOUND"),
        (f"{TIMERS}/GetTimer", "TIMER_NOT_FOUND"),
        (f"{TIMERS}/PauseTimer", "TIMER_NOT_FOUND"),
        (f"{TIMERS}/ResumeTimer", "TIMER_NOT_FOUND"),
        (f"{TIMERS}/FireTimer", "TIMER_NOT_FOUND"),
        (f"{TIMERS}/DeleteTimer", "TIMER_NOT_FOUND"),
        (f"{PUBLISHERS}/GetPostJob", "POST_JOB_NOT_FOUND"),
    ],
)
async def test_an_unknown_id_is_not_found(clients: Clients, method: str, reason: str) -> None:
    code, refused = await fault(clients, method, request_of(method))
    assert (code, refused.reason) == (grpc.StatusCode.NOT_FOUND, reason)


async def test_credentials_refused_by_the_provider_connect_nothing(clients: Clients) -> None:
    request = request_of(f"{ACCOUNTS}/ConnectAccount", {"credentials": {"access_token": "stolen"}})
    code, refused = await fault(clients, f"{ACCOUNTS}/ConnectAccount", request)
    assert (code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CREDENTIALS_REFUSED")
    assert "stolen" not in refused.message


async def test_every_process_still_serves_after_all_refusals(stack: Stack, clients: Clients) -> None:
    await stack.wait_serving()
    assert {service: stack.starts(service) for service in stack.targets} == dict.fromkeys(stack.targets, 1)
    assert not [line for service in stack.targets for line in stack.output(service) if "unhandled exception" in line]


def _length(size: int) -> bytes:
    """Encodes the size as a varint."""
    encoded = b""
    while size > 127:
        encoded += bytes((size & 127 | 128,))
        size >>= 7
    return encoded + bytes((size,))
