"""The errors that a scheduler reports to `on_error`. Each names the job, hook or call that it is about."""

from datetime import datetime, timedelta

from jobkit.guards import describe
from jobkit.job import Job


class SchedulerError(Exception):
    """The base of all reports. The scheduler has already dealt with the consequences."""


class JobError(SchedulerError):
    def __init__(self, job: Job, message: str) -> None:
        super().__init__(f"job {job.id}: {message}")
        self.job = job


class AttemptFailed(JobError):
    """An attempt failed. The next one follows at `retry_time`."""

    def __init__(self, job: Job, error: Exception, retry_time: datetime) -> None:
        super().__init__(
            job, f"attempt {job.attempts} failed, next attempt at {retry_time.isoformat()}: {describe(error)}"
        )
        self.error = error
        self.retry_time = retry_time


class JobFailed(JobError):
    """The last attempt failed. A one-time job has ended, a recurring one goes on with its next occurrence."""

    def __init__(self, job: Job, error: Exception) -> None:
        super().__init__(job, f"gave up after attempt {job.attempts}: {describe(error)}")
        self.error = error


class WorkerLost(Exception):
    """The last allowed attempt was begun and nobody recorded its end: the job may be what kills its worker."""


class OccurrenceSkipped(JobError):
    """An occurrence was too late, and the job's misfire policy skips it."""


class InvalidJob(JobError):
    """The row cannot be understood. It is paused (`sleep_until` is null) until someone corrects it."""


class LateWrite(JobError):
    """Another worker or an edit has taken the job: the result of this run was not written."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, f"the lock with fence {job.fence} no longer holds; nothing was written")


class LockLost(JobError):
    """The lock could not be extended: the run is cancelled."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, f"the lock with fence {job.fence} was lost during the run, which is cancelled")


class RunTimedOut(JobError):
    """The run took longer than `run_timeout`. It is cancelled and counts as failed."""

    def __init__(self, job: Job, timeout: timedelta) -> None:
        super().__init__(job, f"the run of attempt {job.attempts} took longer than {timeout}; it is cancelled")


class RunLost(JobError):
    """The run ignored its cancellation. Its worker abandons it, and its lock is no longer extended."""

    def __init__(self, job: Job, waited: timedelta) -> None:
        super().__init__(job, f"the run was cancelled and has not ended within {waited}; it may still be running")


class TooManyLostRuns(SchedulerError):
    """The scheduler begins no run until one of the lost runs ends."""

    def __init__(self) -> None:
        super().__init__("too many cancelled runs have not ended; no run is begun until one of them ends")


class LoopBlocked(SchedulerError):
    """The event loop was blocked for as long as locks last: other workers may have taken over the running jobs."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the event loop was blocked for {seconds:.1f} s by a handler, and locks may have ended")


class StoreFailed(SchedulerError):
    """A call of the store failed. It is retried with a back-off."""

    def __init__(self, call: str, error: Exception) -> None:
        super().__init__(f"{call}: {describe(error)}")
        self.call = call
        self.error = error


class HookFailed(SchedulerError):
    def __init__(self, hook: str, error: Exception) -> None:
        super().__init__(f"{hook}: {describe(error)}")
        self.hook = hook
        self.error = error
