"""Explaining slots among the fakes of `Queue`."""

from typing import TYPE_CHECKING

from queue_service.application.account_check import AccountCheck
from queue_service.application.earlier_times import EarlierTimes
from queue_service.application.explain_slot import ExplainSlot
from queue_service.domain.explaining import Explanation

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


async def explained(queue: "Queue", slot_id: str, organization_id: str = "acme") -> Explanation:
    explain_slot = ExplainSlot(
        database=queue.database,
        clock=queue.clock,
        drafts=queue.drafts,
        check_accounts=AccountCheck(queue.accounts),
        earlier_times=EarlierTimes(queue.schedule),
        policy=queue.policy,
    )
    return await explain_slot(organization_id, slot_id)


def reasons(explanation: Explanation) -> list[str]:
    return [each.reason for each in explanation.obstacles]


def passed(explanation: Explanation) -> list[str]:
    return [each.reason for each in explanation.passed_times]
