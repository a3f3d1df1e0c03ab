"""What a scheduler tells `on_error`: each says which job, hook or call it is about."""

from datetime import datetime, timedelta

from jobkit.guards import describe
from jobkit.job import Job


class SchedulerError(Exception):
    """Something went wrong, and what follows from it has been seen to."""


class JobError(SchedulerError):
    def __init__(self, job: Job, message: str) -> None:
        super().__init__(f"job {job.id}: {message}")
        self.job = job


class AttemptFailed(JobError):
    """It is tried again at `retry_time`."""

    def __init__(self, job: Job, error: Exception, retry_time: datetime) -> None:
        super().__init__(job, f"attempt {job.attempts} failed, again at {retry_time.isoformat()}: {describe(error)}")
        self.error = error
        self.retry_time = retry_time


class JobFailed(JobError):
    """That was the last attempt: a one-time job has ended, a recurring one goes on with its next occurrence."""

    def __init__(self, job: Job, error: Exception) -> None:
        super().__init__(job, f"gave up after attempt {job.attempts}: {describe(error)}")
        self.error = error


class WorkerLost(Exception):
    """As many attempts as may be were begun, and no end of the last was written: perhaps it ends its worker."""


class OccurrenceSkipped(JobError):
    """It was too late for an occurrence, which the job's misfire policy leaves out."""


class InvalidJob(JobError):
    """The row makes no sense. It is paused: `sleep_until` is null, until somebody mends it."""


class LateWrite(JobError):
    """Another worker or an editor has the job now: what became of this run was not written."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, f"the lock with fence {job.fence} holds no longer; nothing was written")


class LockLost(JobError):
    """The lock could not be extended: the run was cancelled."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, f"the lock with fence {job.fence} was lost during the run, which is cancelled")


class RunTimedOut(JobError):
    """The run took longer than `run_timeout`. It is cancelled, and has failed."""

    def __init__(self, job: Job, timeout: timedelta) -> None:
        super().__init__(job, f"the run of attempt {job.attempts} took longer than {timeout}; it is cancelled")


class RunLost(JobError):
    """The run was cancelled and goes on. Its worker leaves it behind, and its lock is not extended any more."""

    def __init__(self, job: Job, waited: timedelta) -> None:
        super().__init__(job, f"the run was cancelled and has not ended within {waited}; it may still be going on")


class TooManyLostRuns(SchedulerError):
    """Nothing is begun until one of the runs ends that were cancelled and go on."""

    def __init__(self) -> None:
        super().__init__("too many runs were cancelled and do not end; no other is begun before one of them has ended")


class LoopBlocked(SchedulerError):
    """The event loop stood still for as long as locks last: other workers may have taken over what is running here."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the event loop stood still for {seconds:.1f} s: a handler blocks it, and locks may have ended"
        )


class StoreFailed(SchedulerError):
    """A call of the store failed; it is made again after a while."""

    def __init__(self, call: str, error: Exception) -> None:
        super().__init__(f"{call}: {describe(error)}")
        self.call = call
        self.error = error


class HookFailed(SchedulerError):
    def __init__(self, hook: str, error: Exception) -> None:
        super().__init__(f"{hook}: {describe(error)}")
        self.hook = hook
        self.error = error
