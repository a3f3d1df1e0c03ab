"""The vocabulary of errors: rules raise them, the RPC edge turns them into statuses, and clients turn statuses back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Code(StrEnum):
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    ABORTED = "ABORTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    UNAVAILABLE = "UNAVAILABLE"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    OUT_OF_RANGE = "OUT_OF_RANGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    field: str
    description: str


class Fault(Exception):
    """An expected refusal. `message` is for the caller and must not contain anything internal."""

    code: Code

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        retry_after: timedelta | None = None,
        violations: tuple[Violation, ...] = (),
    ) -> None:
        super().__init__(f"{self.code} {reason}: {message}")
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        self.violations = violations


class InvalidRequest(Fault):
    code = Code.INVALID_ARGUMENT


class InvalidField(InvalidRequest):
    def __init__(self, field: str, description: str, *, reason: str = "INVALID_FIELD") -> None:
        super().__init__(
            reason,
            f"{field}: {description}",
            metadata={"field": field},
            violations=(Violation(field=field, description=description),),
        )


class NotFound(Fault):
    code = Code.NOT_FOUND


class AlreadyExists(Fault):
    code = Code.ALREADY_EXISTS


class Conflict(Fault):
    """Another call changed the thing first (a stale etag, a lost race): read again, then decide."""

    code = Code.ABORTED


class Refused(Fault):
    """The thing exists but its state does not allow the call."""

    code = Code.FAILED_PRECONDITION


class LimitReached(Fault):
    code = Code.RESOURCE_EXHAUSTED


class Forbidden(Fault):
    code = Code.PERMISSION_DENIED


class Unauthenticated(Fault):
    code = Code.UNAUTHENTICATED


class Unavailable(Fault):
    """A dependency of the call is unreachable; repeat the call later."""

    code = Code.UNAVAILABLE


class DeadlineExceeded(Fault):
    code = Code.DEADLINE_EXCEEDED


class OutOfRange(Fault):
    """The call asks for something that is not kept any more."""

    code = Code.OUT_OF_RANGE
