"""The status of any fault fits into the headers that carry it."""

from datetime import timedelta
from typing import Any

import pytest
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from servicekit.faults import Conflict, Unavailable, Violation
from servicekit.rpc.status import DETAILS_KEY, PUSHBACK_KEY, Refusal, refusal_of

LONG = "ü" * 3000


def size(refusal: Refusal) -> int:
    """Returns the bytes in the headers, with base64 and with each byte of the message percent-encoded."""
    details = dict(refusal.metadata)[DETAILS_KEY]
    return len(details) * 4 // 3 + len(refusal.message.encode()) * 3


def info(refusal: Refusal) -> Any:
    found = error_details_pb2.ErrorInfo()
    details: Any = dict(refusal.metadata)[DETAILS_KEY]
    status_pb2.Status.FromString(details).details[0].Unpack(found)
    return found


def test_a_long_fault_is_cut_but_keeps_its_reason() -> None:
    violations = tuple(Violation(field=f"f{number}{LONG}", description=LONG) for number in range(200))
    refusal = refusal_of(
        Conflict(
            "LOST", LONG, metadata={"first": "1"} | {f"k{number}": LONG for number in range(50)}, violations=violations
        )
    )
    assert size(refusal) < 8000
    assert info(refusal).reason == "LOST"
    assert info(refusal).metadata["first"] == "1"


@given(
    message=st.text(),
    metadata=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=50), st.text()),
    violations=st.lists(st.builds(Violation, field=st.text(), description=st.text()), max_size=300).map(tuple),
)
def test_any_fault_can_be_encoded(message: str, metadata: dict[str, str], violations: tuple[Violation, ...]) -> None:
    refusal = refusal_of(Conflict("LOST", message, metadata=metadata, violations=violations))
    assert info(refusal).reason == "LOST"
    assert size(refusal) < 8000


@pytest.mark.parametrize(
    ("after", "pushback"),
    [(None, None), (timedelta(0), "0"), (timedelta(milliseconds=250), "250"), (timedelta(seconds=30), "-1")],
)
def test_retries_inside_grpc_wait_a_moment_or_leave_it_to_the_caller(
    after: timedelta | None, pushback: str | None
) -> None:
    assert dict(refusal_of(Unavailable("AWAY", "away", retry_after=after)).metadata).get(PUSHBACK_KEY) == pushback
