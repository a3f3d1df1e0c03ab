"""Timers survive a round trip, and a stored event still decodes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from civil.cron import Dst
from civil.zones import zone_names
from postflow.schedule.v1 import timer_pb2
from postflow.schedule.v1.schedule_events_pb2 import TimerFired
from schedule_service.domain.timers.occurrence import Fired
from schedule_service.domain.timers.timer import MisfirePolicy, TimerState, paused
from schedule_service.domain.timers.timer_request import TimerRequest, created
from schedule_service.wire import timers as wire
from servicekit.timestamps import moment

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

spans = st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=1))
misfires: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.just({"misfire_policy": MisfirePolicy.FIRE_ONCE}),
    st.fixed_dictionaries({"misfire_policy": st.just(MisfirePolicy.SKIP)}, optional={"skip_after": spans}),
    st.fixed_dictionaries({"misfire_policy": st.just(MisfirePolicy.FIRE_ALL)}, optional={"catch_up_interval": spans}),
)
schedules = st.one_of(
    st.fixed_dictionaries(
        {"fire_time": st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))}
    ),
    st.fixed_dictionaries({"delay": st.timedeltas(timedelta(0), timedelta(days=3650))}),
    st.fixed_dictionaries(
        {"cron": st.sampled_from(["@daily", "30 2 * * mon-fri", "@every 1h30m"])},
        optional={
            "time_zone": st.sampled_from(sorted(zone_names())),
            "dst_policy": st.sampled_from(Dst),
            "repeat_until": st.datetimes(datetime(2030, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)),
        },
    ),
)
fields = st.builds(
    lambda schedule, misfire, payload, auto_remove: TimerRequest(
        topic="drafts.generate", payload=payload, auto_remove=auto_remove, **schedule, **misfire
    ),
    schedules,
    misfires,
    st.binary(max_size=100),
    st.booleans(),
)

MISFIRE_NUMBERS = (
    timer_pb2.MISFIRE_POLICY_UNSPECIFIED,
    timer_pb2.MISFIRE_POLICY_FIRE_ONCE,
    timer_pb2.MISFIRE_POLICY_SKIP,
    timer_pb2.MISFIRE_POLICY_FIRE_ALL,
)
DST_NUMBERS = (timer_pb2.DST_POLICY_UNSPECIFIED, timer_pb2.DST_POLICY_CRON, timer_pb2.DST_POLICY_ONCE)

# An event as the first release encoded it: it may wait in a stream for a month.
FIRED = bytes.fromhex(
    "0a0461636d6512076e696768746c791a0f6472616674732e67656e6572617465220200ff2a12323032362d31302d32355430323a33302f"
    "32320b0890a395cd06108094ef3a3a0b0890a395cd0610c0a1a63c4001"
)


@given(fields)
def test_a_timer_can_be_created_again_from_what_is_shown(request: TimerRequest) -> None:
    timer = created("acme", "t", request, now=NOW)
    message = timer_pb2.Timer.FromString(wire.shown(timer).SerializeToString())
    again = created("acme", "t", wire.timer_request(message), now=NOW)
    assert again == timer
    assert message.etag == timer.etag
    assert message.state == timer_pb2.TIMER_STATE_ACTIVE
    assert moment(message.next_fire_time) == timer.due_time
    assert (moment(message.create_time), moment(message.update_time)) == (NOW, NOW)


def test_every_state_and_policy_has_its_own_number() -> None:
    assert {wire.state(number) for number in timer_pb2.TimerState.values()} == {None, *TimerState}
    misfire = {wire.timer_request(timer_pb2.Timer(misfire_policy=each)).misfire_policy for each in MISFIRE_NUMBERS}
    assert misfire == {None, *MisfirePolicy}
    assert {wire.timer_request(timer_pb2.Timer(dst_policy=each)).dst_policy for each in DST_NUMBERS} == {None, *Dst}


def test_a_paused_timer_shows_when_it_would_be_due() -> None:
    timer = paused(created("acme", "t", TimerRequest(topic="t", cron="@daily"), now=NOW), now=NOW)
    message = wire.shown(timer)
    assert message.state == timer_pb2.TIMER_STATE_PAUSED
    assert moment(message.next_fire_time) == datetime(2026, 3, 3, tzinfo=UTC)


def test_a_firing_is_announced_with_all_its_fields() -> None:
    fired = Fired(
        organization_id="acme",
        timer_id="nightly",
        topic="drafts.generate",
        payload=b"\0\xff",
        occurrence_key="2026-10-25T02:30/2",
        due_time=NOW,
        fire_time=NOW + timedelta(milliseconds=3),
        manual=True,
    )
    announced = wire.timer_fired(fired)
    assert (announced.subject, announced.organization_id, announced.aggregate_id) == (
        "events.schedule.timer",
        "acme",
        "nightly",
    )
    assert announced.message.SerializeToString(deterministic=True) == FIRED


def test_a_stored_event_still_decodes() -> None:
    event = TimerFired.FromString(FIRED)
    assert (event.organization_id, event.timer_id, event.topic) == ("acme", "nightly", "drafts.generate")
    assert (event.payload, event.occurrence_key, event.manual) == (b"\0\xff", "2026-10-25T02:30/2", True)
    assert moment(event.due_time) == NOW
    assert moment(event.fire_time) == NOW + timedelta(milliseconds=3)
