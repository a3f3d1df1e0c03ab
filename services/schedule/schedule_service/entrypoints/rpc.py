"""Serves ScheduleService."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from postflow.schedule.v1 import schedule_service_pb2 as messages
from postflow.schedule.v1 import schedule_service_pb2_grpc
from schedule_service.application.calendars.check_send_window import CheckSendWindow
from schedule_service.application.calendars.create_schedule_rule import CreateScheduleRule
from schedule_service.application.calendars.delete_account_schedule import DeleteAccountSchedule
from schedule_service.application.calendars.delete_schedule_rule import DeleteScheduleRule
from schedule_service.application.calendars.find_slot_times import FindSlotTimes
from schedule_service.application.calendars.get_account_schedule import GetAccountSchedule
from schedule_service.application.calendars.get_schedule_rule import GetScheduleRule
from schedule_service.application.calendars.list_account_schedules import ListAccountSchedules
from schedule_service.application.calendars.list_rule_targets import ListRuleTargets
from schedule_service.application.calendars.list_schedule_rules import ListScheduleRules
from schedule_service.application.calendars.put_account_schedule import PutAccountSchedule
from schedule_service.application.calendars.update_schedule_rule import UpdateScheduleRule
from schedule_service.domain.calendars.account_schedule import Edition
from schedule_service.wire import account_schedules as schedules
from schedule_service.wire import schedule_rules as rules
from schedule_service.wire.civil_times import not_before, span
from schedule_service.wire.pages import fitting
from servicekit.pg.ledger import mutation
from servicekit.rpc import next_page_token, read_page
from servicekit.timestamps import moment

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_DEFAULT_COUNT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSchedules:
    """The use cases of account schedules."""

    put: PutAccountSchedule
    get: GetAccountSchedule
    list: ListAccountSchedules
    delete: DeleteAccountSchedule
    check_send_window: CheckSendWindow
    find_slot_times: FindSlotTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRules:
    """The use cases of schedule rules."""

    create: CreateScheduleRule
    get: GetScheduleRule
    update: UpdateScheduleRule
    delete: DeleteScheduleRule
    list: ListScheduleRules
    list_targets: ListRuleTargets


class ScheduleServicer(schedule_service_pb2_grpc.ScheduleServiceServicer):
    def __init__(self, *, account_schedules: AccountSchedules, schedule_rules: ScheduleRules) -> None:
        self._account_schedules = account_schedules
        self._schedule_rules = schedule_rules

    async def PutAccountSchedule(
        self, request: messages.PutAccountScheduleRequest, context: Context
    ) -> messages.PutAccountScheduleResponse:
        call = mutation(request, messages.PutAccountScheduleResponse, schedules.put_account_schedule_response)
        return await self._account_schedules.put(
            call,
            social_account_id=request.account_schedule.social_account_id,
            timetable=schedules.timetable(request.account_schedule),
            etag=request.account_schedule.etag,
        )

    async def GetAccountSchedule(
        self, request: messages.GetAccountScheduleRequest, context: Context
    ) -> messages.GetAccountScheduleResponse:
        schedule = await self._account_schedules.get(
            organization_id=request.organization_id, social_account_id=request.social_account_id
        )
        return messages.GetAccountScheduleResponse(account_schedule=schedules.shown(schedule))

    async def ListAccountSchedules(
        self, request: messages.ListAccountSchedulesRequest, context: Context
    ) -> messages.ListAccountSchedulesResponse:
        wanted = read_page(request)
        after = str(wanted.after[0]) if wanted.after else ""
        found = await self._account_schedules.list(
            organization_id=request.organization_id, after=after, size=wanted.size + 1
        )
        page, more = fitting(map(schedules.shown, found), wanted.size)
        return messages.ListAccountSchedulesResponse(
            account_schedules=page,
            next_page_token=next_page_token(request, (page[-1].social_account_id,)) if more else "",
        )

    async def DeleteAccountSchedule(
        self, request: messages.DeleteAccountScheduleRequest, context: Context
    ) -> messages.DeleteAccountScheduleResponse:
        call = mutation(request, messages.DeleteAccountScheduleResponse, schedules.delete_account_schedule_response)
        return await self._account_schedules.delete(
            call,
            social_account_id=request.social_account_id,
            etag=request.etag,
            force=request.force,
        )

    async def CheckSendWindow(
        self, request: messages.CheckSendWindowRequest, context: Context
    ) -> messages.CheckSendWindowResponse:
        checked = await self._account_schedules.check_send_window(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            time=moment(request.time) if request.HasField("time") else None,
        )
        return schedules.check_send_window_response(checked.schedule, checked.state)

    async def FindSlotTimes(
        self, request: messages.FindSlotTimesRequest, context: Context
    ) -> messages.FindSlotTimesResponse:
        found = await self._account_schedules.find_slot_times(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            after=not_before(request.after) if request.HasField("after") else None,
            before=not_before(request.before) if request.HasField("before") else None,
            count=request.count or _DEFAULT_COUNT,
            category_id=schedules.wanted_category(request),
            inside_window_only=request.inside_send_window_only,
            known=Edition(request.known_schedule_version, request.known_tzdata_version),
        )
        return await schedules.find_slot_times_response(found.schedule, found.times)

    async def CreateScheduleRule(
        self, request: messages.CreateScheduleRuleRequest, context: Context
    ) -> messages.CreateScheduleRuleResponse:
        call = mutation(request, messages.CreateScheduleRuleResponse, rules.create_schedule_rule_response)
        return await self._schedule_rules.create(
            call,
            rule_id=request.schedule_rule_id,
            brand_id=rules.brand_id(request.schedule_rule),
            terms=rules.terms(request.schedule_rule),
        )

    async def GetScheduleRule(
        self, request: messages.GetScheduleRuleRequest, context: Context
    ) -> messages.GetScheduleRuleResponse:
        rule = await self._schedule_rules.get(organization_id=request.organization_id, rule_id=request.schedule_rule_id)
        return messages.GetScheduleRuleResponse(schedule_rule=rules.shown(rule))

    async def UpdateScheduleRule(
        self, request: messages.UpdateScheduleRuleRequest, context: Context
    ) -> messages.UpdateScheduleRuleResponse:
        call = mutation(request, messages.UpdateScheduleRuleResponse, rules.update_schedule_rule_response)
        return await self._schedule_rules.update(
            call,
            rule_id=rules.rule_id(request.schedule_rule),
            changes=rules.changes(request.schedule_rule, request.update_mask),
            etag=request.schedule_rule.etag,
        )

    async def DeleteScheduleRule(
        self, request: messages.DeleteScheduleRuleRequest, context: Context
    ) -> messages.DeleteScheduleRuleResponse:
        call = mutation(request, messages.DeleteScheduleRuleResponse, rules.delete_schedule_rule_response)
        return await self._schedule_rules.delete(
            call,
            rule_id=request.schedule_rule_id,
            etag=request.etag,
        )

    async def ListScheduleRules(
        self, request: messages.ListScheduleRulesRequest, context: Context
    ) -> messages.ListScheduleRulesResponse:
        wanted = read_page(request)
        found = await self._schedule_rules.list(
            organization_id=request.organization_id,
            brand_id=request.brand_id,
            after=str(wanted.after[0]) if wanted.after else "",
            size=wanted.size + 1,
        )
        page, more = fitting(map(rules.shown, found), wanted.size)
        return messages.ListScheduleRulesResponse(
            schedule_rules=page, next_page_token=next_page_token(request, (page[-1].id,)) if more else ""
        )

    async def ListRuleTargets(
        self, request: messages.ListRuleTargetsRequest, context: Context
    ) -> messages.ListRuleTargetsResponse:
        wanted = read_page(request)
        page = await self._schedule_rules.list_targets(
            organization_id=request.organization_id,
            brand_id=request.brand_id,
            after=not_before(request.after) if request.HasField("after") else None,
            horizon=span(request.horizon) if request.HasField("horizon") else None,
            rest=rules.rest(wanted.after),
            size=wanted.size,
        )
        return messages.ListRuleTargetsResponse(
            rule_targets=map(rules.target, page.targets),
            next_page_token=next_page_token(request, rules.cursor(page.rest)) if page.rest else "",
            skipped_rules=map(rules.skipped, page.skipped),
        )
