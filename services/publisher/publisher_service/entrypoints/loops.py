"""Publisher's periodic steps and their periods."""

import asyncio
from datetime import timedelta

from publisher_service.application.count_jobs import CountJobs
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.reseal_credentials import ResealCredentials
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
    wake_stranded_lines: WakeStrandedLines,
    count_jobs: CountJobs,
    reseal_credentials: ResealCredentials,
    drop_kept_content: DropKeptContent,
) -> list[Loop]:
    """`due_now` is set when a job may go out at once, `gate_changed` when an account was connected or held."""
    return [
        Loop("sweep", sweep.step, sweep_period, due_now),
        Loop("relabel lines", relabel_lines, timedelta(seconds=1), gate_changed),
        Loop("stranded lines", wake_stranded_lines, timedelta(seconds=30)),
        Loop("count jobs", count_jobs.step, timedelta(seconds=15)),
        Loop("reseal credentials", reseal_credentials.step, timedelta(hours=1)),
        Loop("kept content", drop_kept_content, timedelta(minutes=1)),
    ]
