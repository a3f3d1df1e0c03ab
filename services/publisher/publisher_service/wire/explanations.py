"""Explanations of post jobs, as PublisherService gives them."""

from datetime import UTC, datetime

from postflow.publisher.v1 import explanation_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.explanation import Checked, CheckState, Explanation
from publisher_service.domain.sentences import Value
from publisher_service.wire.posts import post_job
from servicekit.timestamps import timestamp

_STATES = {
    CheckState.PASSED: explanation_pb2.CHECK_STATE_PASSED,
    CheckState.OPEN: explanation_pb2.CHECK_STATE_OPEN,
    CheckState.NOT_APPLICABLE: explanation_pb2.CHECK_STATE_NOT_APPLICABLE,
}


def explain_post_job_response(explained: Explanation) -> pb.ExplainPostJobResponse:
    return pb.ExplainPostJobResponse(
        post_job=post_job(explained.job),
        checks=map(_check, explained.checks),
        verdict=explained.verdict,
        clear_time=timestamp(explained.clear_time),
        sentence=explained.sentence,
        read_time=timestamp(explained.read_time),
    )


def _check(checked: Checked) -> explanation_pb2.PostJobCheck:
    return explanation_pb2.PostJobCheck(
        name=checked.name,
        state=_STATES[checked.state],
        verdict=checked.verdict,
        values={name: _text(value) for name, value in checked.values.items()},
        clear_time=timestamp(checked.clear_time),
        sentence=checked.sentence,
    )


def _text(value: Value) -> str:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case bool():
            return str(value).lower()
        case _:
            return str(value)
