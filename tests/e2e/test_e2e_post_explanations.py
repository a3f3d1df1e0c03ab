"""An operator asks why a post has not gone out: it is held, or over a daily cap."""

from datetime import UTC, timedelta

from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.publisher.v1.explanation_pb2 import CHECK_STATE_OPEN
from postflow.publisher.v1.hold_pb2 import HOLD_SCOPE_ACCOUNT
from postflow.publisher.v1.post_job_pb2 import ACTION_POST
from postflow.publisher.v1.publisher_service_pb2 import (
    ExplainPostJobRequest,
    ExplainPostJobResponse,
    PutHoldRequest,
    ReleaseHoldRequest,
)
from postflow.publisher.v1.social_account_pb2 import DailyCap
from postflow.publisher.v1.social_account_service_pb2 import DailyCapList, UpdateAccountRequest
from postflow.queue.v1.queue_service_pb2 import ExplainSlotRequest
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant


async def explained(tenant: Tenant, draft_id: str, verdict: str) -> ExplainPostJobResponse:
    """Returns the explanation of the draft's post once it has this verdict."""

    async def asked() -> ExplainPostJobResponse | None:
        for job in await tenant.jobs(draft_id):
            request = ExplainPostJobRequest(organization_id=tenant.organization_id, post_job_id=job.id)
            found: ExplainPostJobResponse = await tenant.clients.publisher.ExplainPostJob(request)
            return found if found.verdict == verdict else None
        return None

    found = await eventually(asked)
    assert found is not None
    return found


async def blocked_by(tenant: Tenant, slot_id: str, reason: str) -> None:
    """Waits until Queue's explanation of the slot says the same."""

    async def asked() -> bool:
        request = ExplainSlotRequest(organization_id=tenant.organization_id, slot_id=slot_id)
        found = await tenant.clients.queue.ExplainSlot(request)
        return reason in [each.reason for each in found.obstacles]

    assert await eventually(asked)


async def cap_posts(tenant: Tenant, most: int) -> None:
    caps = DailyCapList(daily_caps=[DailyCap(action=ACTION_POST, most=most)])
    await tenant.clients.accounts.UpdateAccount(
        UpdateAccountRequest(organization_id=tenant.organization_id, social_account_id="page", daily_caps=caps)
    )


async def test_a_held_post_names_its_hold_until_it_goes_out(tenant: Tenant) -> None:
    await tenant.connect()
    organization = tenant.organization_id
    hold = PutHoldRequest(
        organization_id=organization,
        hold_id="incident",
        scope=HOLD_SCOPE_ACCOUNT,
        scope_id="page",
        reason="a wrong price",
        holder="ann",
    )
    await tenant.clients.publisher.PutHold(hold)
    await tenant.create("held", "Held")
    [slot] = await tenant.schedule_at("held", SystemClock().now() + timedelta(seconds=1))
    found = await explained(tenant, "held", "ACCOUNT_ON_HOLD")
    assert found.sentence.startswith("A hold covers account page: a wrong price (hold incident, put by ann, since ")
    assert not found.HasField("clear_time")
    assert next(check.name for check in found.checks if check.state == CHECK_STATE_OPEN) == "ACCOUNT_HOLD"
    await blocked_by(tenant, slot.id, "ACCOUNT_ON_HOLD")
    release = ReleaseHoldRequest(organization_id=organization, hold_id="incident")
    await tenant.clients.publisher.ReleaseHold(release)
    await tenant.until("held", DRAFT_STATE_PUBLISHED)
    after = await explained(tenant, "held", "ENDED")
    assert after.sentence.startswith("It was published at ")


async def test_a_post_over_its_daily_cap_says_when_the_next_day_begins(tenant: Tenant) -> None:
    await tenant.connect()
    await cap_posts(tenant, 1)
    for draft in ("first", "second"):
        await tenant.create(draft, draft)
    now = SystemClock().now()
    await tenant.schedule_at("first", now + timedelta(seconds=1))
    await tenant.until("first", DRAFT_STATE_PUBLISHED)
    [slot] = await tenant.schedule_at("second", SystemClock().now() + timedelta(seconds=1))
    found = await explained(tenant, "second", "DAILY_CAP")
    (cap,) = [check for check in found.checks if check.name == "DAILY_CAP"]
    assert (cap.values["cap"], cap.values["used"], cap.values["action"]) == ("1", "1", "POST")
    read = found.read_time.ToDatetime(UTC)
    midnight = read.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert found.clear_time.ToDatetime(UTC) == midnight
    await blocked_by(tenant, slot.id, "DAILY_CAP")
    await cap_posts(tenant, 2)
    await tenant.until("second", DRAFT_STATE_PUBLISHED)
