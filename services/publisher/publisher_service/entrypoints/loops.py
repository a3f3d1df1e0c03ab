"""Publisher's periodic steps and their periods."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from publisher_service.application.begin_follow_ups import BeginFollowUps
from publisher_service.application.count_jobs import CountJobs
from publisher_service.application.count_notifications import CountNotifications
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.drop_old_rows import DropOldRows
from publisher_service.application.end_holds import EndHolds
from publisher_service.application.find_rare_work import FindRareWork
from publisher_service.application.follow_quotas import FollowQuotas
from publisher_service.application.free_posts import FreePosts
from publisher_service.application.keep_marks import KeepMarks
from publisher_service.application.prepare_ahead import PrepareAhead
from publisher_service.application.reconcile import Reconcile
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.release_destinations import ReleaseDestinations
from publisher_service.application.reseal_credentials import ResealCredentials
from publisher_service.application.wake_parked import WakeParked
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.domain.rare_work import Work
from publisher_service.engine.sweep import Sweep
from servicekit.run import Loop

# The loop "rare work" wakes them.
_RARELY = timedelta(seconds=30)


def loops(
    *,
    sweep: Sweep,
    sweep_period: timedelta,
    due_now: asyncio.Event,
    relabel_lines: RelabelLines,
    release_destinations: ReleaseDestinations,
    wake_stranded_lines: WakeStrandedLines,
    wake_parked: WakeParked,
    drop_old_rows: DropOldRows,
    count_jobs: CountJobs,
    reseal_credentials: ResealCredentials,
    drop_kept_content: DropKeptContent,
    prepare_ahead: PrepareAhead,
    follow_quotas: FollowQuotas,
    reconcile: Reconcile,
    begin_follow_ups: BeginFollowUps,
    keep_marks: KeepMarks,
    marks_changed: asyncio.Event,
    end_holds: EndHolds,
    free_posts: FreePosts,
    find_rare_work: FindRareWork,
    wakes: Mapping[Work, asyncio.Event],
) -> list[Loop]:
    """Each event begins a step early.

    `due_now` is set when a job may go out at once, `marks_changed` when this process has come further than NATS knows,
    and `wakes` when there is rare work: by the call that makes it, or else as soon as it is found.
    """
    return [
        Loop("sweep", sweep.step, sweep_period, due_now),
        Loop("relabel lines", relabel_lines, _RARELY, wakes[Work.RELABEL_LINES]),
        Loop("release destinations", release_destinations, _RARELY, wakes[Work.RELEASE_DESTINATIONS]),
        Loop("rare work", find_rare_work, timedelta(seconds=0.5)),
        Loop("stranded lines", wake_stranded_lines, timedelta(seconds=30)),
        Loop("parked posts", wake_parked, _RARELY, wakes[Work.WAKE_PARKED]),
        Loop("old rows", drop_old_rows, timedelta(hours=1)),
        Loop("count jobs", count_jobs.step, timedelta(seconds=15)),
        Loop("reseal credentials", reseal_credentials.step, timedelta(hours=1)),
        Loop("kept content", drop_kept_content, timedelta(minutes=1)),
        Loop("quotas", follow_quotas, _RARELY, wakes[Work.FOLLOW_QUOTAS]),
        Loop("prepare ahead", prepare_ahead, timedelta(seconds=5)),
        Loop("reconcile", reconcile.step, _RARELY, wakes[Work.RECONCILE]),
        Loop("follow-ups", begin_follow_ups, _RARELY, wakes[Work.FOLLOW_UPS]),
        Loop("beat", keep_marks.beat, timedelta(seconds=2)),
        Loop("marks", keep_marks.exchange, timedelta(seconds=5), marks_changed),
        Loop("end holds", end_holds, _RARELY, wakes[Work.END_HOLDS]),
        Loop("free posts", free_posts, _RARELY, wakes[Work.FREE_POSTS]),
    ]


def notification_loops(counted: CountNotifications) -> list[Loop]:
    return [
        Loop("count notifications", counted.count, timedelta(seconds=15)),
        Loop("reseal webhook secrets", counted.reseal, timedelta(hours=1)),
    ]
