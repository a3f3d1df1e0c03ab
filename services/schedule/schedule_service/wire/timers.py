"""Translates timers between protobuf and the domain."""

from civil.cron import Dst
from postflow.schedule.v1 import schedule_events_pb2, timer_pb2
from postflow.schedule.v1.timer_service_pb2 import (
    CreateTimerResponse,
    DeleteTimerResponse,
    FireTimerResponse,
    PauseTimerResponse,
    ResumeTimerResponse,
)
from schedule_service.domain.timers.occurrence import Fired, ManualFiring
from schedule_service.domain.timers.timer import MisfirePolicy, Timer, TimerState
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.wire.civil_times import span
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import moment, timestamp
from topology import events_subject

_STATES = {getattr(timer_pb2, f"TIMER_STATE_{state}"): state for state in TimerState}
_DST_POLICIES = {timer_pb2.DST_POLICY_CRON: Dst.CRON, timer_pb2.DST_POLICY_ONCE: Dst.ONCE}
_DST_NUMBERS = {policy: number for number, policy in _DST_POLICIES.items()}
_MISFIRE_POLICIES = {getattr(timer_pb2, f"MISFIRE_POLICY_{policy}"): policy for policy in MisfirePolicy}


def timer_request(message: timer_pb2.Timer) -> TimerRequest:
    return TimerRequest(
        topic=message.topic,
        payload=message.payload,
        fire_time=moment(message.fire_time) if message.HasField("fire_time") else None,
        delay=span(message.delay) if message.HasField("delay") else None,
        cron=message.cron if message.HasField("cron") else None,
        time_zone=message.time_zone,
        dst_policy=_DST_POLICIES.get(message.dst_policy),
        repeat_until=moment(message.repeat_until) if message.HasField("repeat_until") else None,
        misfire_policy=_MISFIRE_POLICIES.get(message.misfire_policy),
        catch_up_interval=span(message.catch_up_interval) if message.HasField("catch_up_interval") else None,
        skip_after=span(message.skip_after) if message.HasField("skip_after") else None,
        auto_remove=message.auto_remove,
    )


def state(number: int) -> TimerState | None:
    """Returns the state to list; None: any."""
    return _STATES.get(number)


def shown(timer: Timer) -> timer_pb2.Timer:
    """Returns the timer as callers see it, without fields that do not apply: it can be created again from it."""
    message = timer_pb2.Timer(
        id=timer.id,
        topic=timer.topic,
        payload=timer.payload,
        misfire_policy=f"MISFIRE_POLICY_{timer.misfire_policy}",
        auto_remove=timer.auto_remove,
        state=f"TIMER_STATE_{timer.state}",
        next_fire_time=timer.due_time,
        last_fire_time=timer.last_fire_time,
        last_occurrence_key=timer.last_occurrence_key,
        fire_count=timer.fire_count,
        etag=timer.etag,
        create_time=timer.create_time,
        update_time=timer.update_time,
        tzdata_version=timer.tzdata_version,
        fault=timer.fault,
    )
    if timer.fire_time is not None:
        message.fire_time.CopyFrom(timestamp(timer.fire_time))
    else:
        message.cron = timer.cron
        message.time_zone = timer.zone.name
        message.dst_policy = _DST_NUMBERS[timer.dst_policy]
    if timer.repeat_until is not None:
        message.repeat_until.CopyFrom(timestamp(timer.repeat_until))
    if timer.misfire_policy is MisfirePolicy.FIRE_ALL:
        message.catch_up_interval.FromTimedelta(timer.catch_up_interval)
    if timer.misfire_policy is MisfirePolicy.SKIP:
        message.skip_after.FromTimedelta(timer.skip_after)
    return message


def create_timer_response(timer: Timer) -> CreateTimerResponse:
    return CreateTimerResponse(timer=shown(timer))


def pause_timer_response(timer: Timer) -> PauseTimerResponse:
    return PauseTimerResponse(timer=shown(timer))


def resume_timer_response(timer: Timer) -> ResumeTimerResponse:
    return ResumeTimerResponse(timer=shown(timer))


def fire_timer_response(firing: ManualFiring) -> FireTimerResponse:
    return FireTimerResponse(timer=shown(firing.timer), occurrence_key=firing.occurrence_key)


def delete_timer_response(_: None) -> DeleteTimerResponse:
    return DeleteTimerResponse()


def timer_fired(fired: Fired) -> Announcement:
    return Announcement(
        subject=events_subject("schedule", "timer"),
        organization_id=fired.organization_id,
        aggregate_id=fired.timer_id,
        message=schedule_events_pb2.TimerFired(
            organization_id=fired.organization_id,
            timer_id=fired.timer_id,
            topic=fired.topic,
            payload=fired.payload,
            occurrence_key=fired.occurrence_key,
            due_time=fired.due_time,
            fire_time=fired.fire_time,
            manual=fired.manual,
        ),
    )
