"""Publisher's periodic steps and their periods."""

import asyncio
from datetime import timedelta

from publisher_service.application.count_jobs import CountJobs
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.drop_reservations import DropReservations
from publisher_service.application.end_holds import EndHolds
from publisher_service.application.follow_quotas import FollowQuotas
from publisher_service.application.free_posts import FreePosts
from publisher_service.application.keep_marks import KeepMarks
from publisher_service.application.prepare_ahead import PrepareAhead
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.release_destinations import ReleaseDestinations
from publisher_service.application.reseal_credentials import ResealCredentials
from publisher_service.application.wake_parked import WakeParked
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.engine.sweep import Sweep
from servicekit.run import Loop


def loops(
    *,
    sweep: Sweep,
    sweep_period: timedelta,
    due_now: asyncio.Event,
    relabel_lines: RelabelLines,
    gate_changed: asyncio.Event,
    release_destinations: ReleaseDestinations,
    destination_activated: asyncio.Event,
    wake_stranded_lines: WakeStrandedLines,
    wake_parked: WakeParked,
    cap_changed: asyncio.Event,
    drop_reservations: DropReservations,
    count_jobs: CountJobs,
    reseal_credentials: ResealCredentials,
    drop_kept_content: DropKeptContent,
    prepare_ahead: PrepareAhead,
    follow_quotas: FollowQuotas,
    quota_changed: asyncio.Event,
    keep_marks: KeepMarks,
    marks_changed: asyncio.Event,
    end_holds: EndHolds,
    free_posts: FreePosts,
    hold_ended: asyncio.Event,
) -> list[Loop]:
    """Each event begins a step early.

    `due_now` is set when a job may go out at once, `gate_changed` when an account was connected or held, `hold_ended`
    when a hold has ended, `destination_activated` when a destination was activated, `cap_changed` when an account has
    another daily cap, `marks_changed` when this process has come further than NATS knows.
    """
    return [
        Loop("sweep", sweep.step, sweep_period, due_now),
        Loop("relabel lines", relabel_lines, timedelta(seconds=1), gate_changed),
        Loop("release destinations", release_destinations, timedelta(seconds=1), destination_activated),
        Loop("stranded lines", wake_stranded_lines, timedelta(seconds=30)),
        Loop("parked posts", wake_parked, timedelta(seconds=1), cap_changed),
        Loop("old reservations", drop_reservations, timedelta(hours=1)),
        Loop("count jobs", count_jobs.step, timedelta(seconds=15)),
        Loop("reseal credentials", reseal_credentials.step, timedelta(hours=1)),
        Loop("kept content", drop_kept_content, timedelta(minutes=1)),
        Loop("quotas", follow_quotas, timedelta(seconds=1), quota_changed),
        Loop("prepare ahead", prepare_ahead, timedelta(seconds=5)),
        Loop("beat", keep_marks.beat, timedelta(seconds=2)),
        Loop("marks", keep_marks.exchange, timedelta(seconds=1), marks_changed),
        Loop("end holds", end_holds, timedelta(seconds=1)),
        Loop("free posts", free_posts, timedelta(seconds=1), hold_ended),
    ]
