"""The state of an example: what was said, what may still come late, and what was promised."""

from collections import Counter
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.send_post import Sent
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.post_job import Target
from publisher_service.domain.take_back import SlotPost
from tests.usecase.publisher_service.machine.processes import Process, Processes
from tests.usecase.publisher_service.machine.promised import Promised
from tests.usecase.publisher_service.machine.scene import ACCOUNTS, BEGINNING, ORG, Draft, draft_of

_EMPTY = """
    truncate post_job, attempt, open_claim, content, kept_content, resolution, account_gate, hold, hold_release,
        social_account, activity, outbox, inbox, request_ledger, account_action, reservation, parked_line,
        account_schedule, destination, follow_up_due
"""

_MAY_BE_OUT = """
    select id, draft_id, social_account_id, brand_id, campaign_id, fence from post_job
    where state in ('SENDING', 'UNKNOWN') or in_doubt
"""


class World:
    def __init__(self, processes: Processes) -> None:
        self.clock, self.provider, self.processes = processes.clock, processes.provider, processes.both
        self.promised = Promised()
        # Jobs that this step sends at once: what it cancels at the same time may come first.
        self.urgent: set[str] = set()
        # Holds that this step releases.
        self.releasing: set[str] = set()
        # Destinations that this step activates or deactivates.
        self.switched: set[Target] = set()
        self.drafts: dict[str, Draft] = {}
        self._numbers: Counter[str] = Counter()
        # The number of the newest token of each account; and those that were refused or erased, or may be.
        self.tokens: Counter[str] = Counter()
        self.ended_tokens: set[tuple[str, int]] = set()
        # What may come again, or late: the events, commands, answers, requests, and claims without a confirmed COMMIT.
        self.events: list[SavedDraft | Slot | SlotPost | AccountSchedule] = []
        self.commands: list[Command] = []
        self.late: list[Sent] = []
        self.claimed: list[tuple[Claimed, Process, float]] = []
        self.failed: list[FailedClaim] = []
        # Keys: a person has said that these are not out; nobody has settled these.
        self.denied: set[str] = set()
        self.lost: set[str] = set()
        self.broken: list[str] = []
        self.sequence = 0

    @property
    def now(self) -> datetime:
        return self.clock.moment

    async def begin(self) -> None:
        self.clock.moment = BEGINNING
        self.provider.forget()
        for process in self.processes:
            process.claims.failed.clear()
        await self.processes[0].write(_EMPTY)
        for account in ACCOUNTS:
            self.promised.schedules[account] = AccountSchedule(
                organization_id=ORG, social_account_id=account, version=0
            )

    def draft(self, letter: str) -> Draft:
        """Returns the draft of the letter that is not out yet."""
        if letter not in self.drafts:
            self.drafts[letter] = draft_of(letter, self._numbers[letter])
        return self.drafts[letter]

    def end_step(self) -> None:
        """Keeps the promises of the step from now on."""
        self.urgent.clear()
        self.releasing.clear()
        self.promised.end_step()

    def replace(self, out: set[str]) -> None:
        """Another draft follows each that is out."""
        for letter in [letter for letter, draft in self.drafts.items() if draft.id in out]:
            del self.drafts[letter]
            self._numbers[letter] += 1

    def may_still_come(self, key: str) -> bool:
        """Returns whether a request of this key, or its answer, is still on its way."""
        coming = [sent.claimed for sent in self.late] + [claimed for claimed, _, _ in self.claimed]
        return any(claimed.idempotency_key == key for claimed in coming)

    async def may_be_out(self) -> set[Row[Any]]:
        """Returns the posts that may be out: who stops them before and after they are read has to list them."""
        return {*await self.rows(_MAY_BE_OUT)}

    async def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        return await self.processes[0].rows(statement, **values)
