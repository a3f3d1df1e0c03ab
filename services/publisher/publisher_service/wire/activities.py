"""Activities and the use of daily caps: the calls ListActivity and GetUsage."""

from collections.abc import Sequence
from typing import cast

from channels import Action
from postflow.publisher.v1 import post_job_pb2
from postflow.publisher.v1 import social_account_service_pb2 as pb
from publisher_service.domain.activity import Activity, ActivityFilter, ActivityOutcome
from publisher_service.domain.usage import AccountUsage
from servicekit.timestamps import moment, timestamp

# The generated stubs say that Value returns an int, and that a field takes the enum.
_ACTIONS: dict[str, post_job_pb2.Action] = {
    action: cast(post_job_pb2.Action, post_job_pb2.Action.Value(f"ACTION_{action}")) for action in Action
}
_OUTCOMES: dict[str, pb.ActivityOutcome] = {
    outcome: cast(pb.ActivityOutcome, pb.ActivityOutcome.Value(f"ACTIVITY_OUTCOME_{outcome}"))
    for outcome in ActivityOutcome
}


def activity_filter_from(request: pb.ListActivityRequest) -> ActivityFilter:
    """Translates a request; numbers that this release does not know are skipped."""
    return ActivityFilter(
        organization_id=request.organization_id,
        account_id=request.social_account_id,
        actions=tuple(action for action in Action if _ACTIONS[action] in request.actions),
        outcomes=tuple(outcome for outcome in ActivityOutcome if _OUTCOMES[outcome] in request.outcomes),
        start_time=moment(request.start_time) if request.HasField("start_time") else None,
        end_time=moment(request.end_time) if request.HasField("end_time") else None,
    )


def list_activity_response(activities: Sequence[Activity], next_page_token: str) -> pb.ListActivityResponse:
    return pb.ListActivityResponse(activities=map(_activity, activities), next_page_token=next_page_token)


def get_usage_response(usage: AccountUsage) -> pb.GetUsageResponse:
    return pb.GetUsageResponse(
        local_date=usage.local_date.isoformat(),
        time_zone=usage.time_zone,
        usages=[
            pb.Usage(
                action=_ACTIONS[each.action],
                used=each.used,
                cap=each.cap,
                is_override=each.is_override,
                reset_time=timestamp(usage.reset_time),
                waiting=each.waiting,
            )
            for each in usage.usages
        ],
    )


def _activity(activity: Activity) -> pb.Activity:
    return pb.Activity(
        id=activity.id,
        action=_ACTIONS.get(activity.action, post_job_pb2.ACTION_UNSPECIFIED),
        outcome=_OUTCOMES.get(activity.outcome, pb.ACTIVITY_OUTCOME_UNSPECIFIED),
        post_job_id=activity.post_job_id,
        run=activity.run,
        create_time=timestamp(activity.create_time),
    )
