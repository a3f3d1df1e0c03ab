"""Converts between Fault and google.rpc.Status: the only place where the error vocabulary meets the transport."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from servicekit import faults
from servicekit.faults import Code, Fault, Violation

DOMAIN = "postflow"
DETAILS_KEY = "grpc-status-details-bin"
PUSHBACK_KEY = "grpc-retry-pushback-ms"

# A client drops a status whose headers exceed 8 KiB; these limits stay well below, including base64.
_MAX_MESSAGE = 512
_MAX_METADATA = 1024
_MAX_VIOLATIONS = 2048
_LONGEST_PUSHBACK = timedelta(seconds=1)

_CLASSES: Mapping[Code, type[Fault]] = {
    Code.INVALID_ARGUMENT: faults.InvalidRequest,
    Code.NOT_FOUND: faults.NotFound,
    Code.ALREADY_EXISTS: faults.AlreadyExists,
    Code.ABORTED: faults.Conflict,
    Code.FAILED_PRECONDITION: faults.Refused,
    Code.RESOURCE_EXHAUSTED: faults.LimitReached,
    Code.PERMISSION_DENIED: faults.Forbidden,
    Code.UNAUTHENTICATED: faults.Unauthenticated,
    Code.OUT_OF_RANGE: faults.OutOfRange,
    Code.UNAVAILABLE: faults.Unavailable,
    # The timeout of our own call does not mean that our caller's deadline has passed.
    Code.DEADLINE_EXCEEDED: faults.Unavailable,
}
_REASONS = {Code.UNAVAILABLE: "DOWNSTREAM_UNAVAILABLE", Code.DEADLINE_EXCEEDED: "DOWNSTREAM_TIMEOUT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The error that is sent in place of an answer."""

    code: grpc.StatusCode
    message: str
    reason: str
    field: str = ""  # the first violated field
    metadata: tuple[tuple[str, str | bytes], ...] = ()


def refusal_of(fault: Fault) -> Refusal:
    code = grpc.StatusCode[fault.code]
    message = _clean(fault.message, _MAX_MESSAGE)
    return Refusal(
        code=code,
        message=message,
        reason=fault.reason,
        field=_clean(fault.violations[0].field, 256) if fault.violations else "",
        metadata=((DETAILS_KEY, _encode(code, message, fault)), *_pushback(fault.retry_after)),
    )


def fault_from_error(error: grpc.aio.AioRpcError) -> Fault:
    """Returns the fault that the error of a call means. Raises `error` itself if it is a defect of the other service,
    which makes it one of our service, too."""
    try:
        code = Code(error.code().name)
    except ValueError:
        raise error from None
    status = _details_of(error)
    info = _ErrorDetails.read(status)
    reason = info.reason or _REASONS.get(code, code.value)
    if code is Code.DEADLINE_EXCEEDED:
        reason = _REASONS[code]
    return _CLASSES[code](
        reason,
        status.message or error.details() or reason,
        metadata=info.metadata,
        retry_after=info.retry_after,
        violations=info.violations,
    )


@contextmanager
def calling() -> Iterator[None]:
    """Turns the errors of a call to another service into faults."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise fault_from_error(error) from error


def _pushback(retry_after: timedelta | None) -> tuple[tuple[str, str], ...]:
    """Tells the retries inside gRPC clients how long to wait, or, if that is long, to leave retrying to the caller."""
    if retry_after is None:
        return ()
    pushback = str(math.ceil(retry_after / timedelta(milliseconds=1))) if retry_after <= _LONGEST_PUSHBACK else "-1"
    return ((PUSHBACK_KEY, pushback),)


def _encode(code: grpc.StatusCode, message: str, fault: Fault) -> bytes:
    status = status_pb2.Status(code=code.value[0], message=message)
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason=fault.reason, domain=DOMAIN, metadata=_fitting(fault.metadata))
    )
    if fault.violations:
        status.details.add().Pack(_bad_request(fault.violations))
    if fault.retry_after is not None:
        retry_info = error_details_pb2.RetryInfo()
        retry_info.retry_delay.FromTimedelta(fault.retry_after)
        status.details.add().Pack(retry_info)
    encoded: bytes = status.SerializeToString()
    return encoded


def _bad_request(violations: tuple[Violation, ...]) -> error_details_pb2.BadRequest:
    """Returns as many violations as fit; the last one counts the rest."""
    bad_request = error_details_pb2.BadRequest()
    for index, violation in enumerate(violations):
        bad_request.field_violations.add(
            field=_clean(violation.field, 256), description=_clean(violation.description, 256)
        )
        left = len(violations) - index - 1
        if left and bad_request.ByteSize() > _MAX_VIOLATIONS:
            bad_request.field_violations[-1].description += f" (and {left} more)"
            break
    return bad_request


def _clean(text: str, limit: int) -> str:
    """Returns valid UTF-8 of at most `limit` bytes: a text from a provider's JSON may contain lone surrogates."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _fitting(metadata: Mapping[str, str]) -> dict[str, str]:
    """Returns as many entries as fit, in order."""
    fitting: dict[str, str] = {}
    left = _MAX_METADATA
    for key, value in metadata.items():
        cleaned = _clean(value, 512)
        left -= len(key) + len(cleaned.encode())
        if left < 0:
            break
        fitting[key] = cleaned
    return fitting


def _details_of(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                break
    return status_pb2.Status()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorDetails:
    reason: str = ""
    metadata: Mapping[str, str]
    retry_after: timedelta | None = None
    violations: tuple[Violation, ...] = ()

    @classmethod
    def read(cls, status: status_pb2.Status) -> "_ErrorDetails":
        info = error_details_pb2.ErrorInfo()
        bad_request = error_details_pb2.BadRequest()
        retry_info = error_details_pb2.RetryInfo()
        for packed in status.details:
            for detail in (info, bad_request, retry_info):
                packed.Unpack(detail)  # does nothing for another type
        return cls(
            reason=info.reason,
            metadata=dict(info.metadata),
            retry_after=retry_info.retry_delay.ToTimedelta() if retry_info.HasField("retry_delay") else None,
            violations=tuple(
                Violation(field=one.field, description=one.description) for one in bad_request.field_violations
            ),
        )
