"""Drafts, Queue and Schedule, as they speak to Publisher: events, commands and take-backs."""

import hashlib
from collections.abc import Sequence
from datetime import timedelta

from civil.windows import SendWindow
from postflow.drafts.v1 import draft_pb2
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.domain.claim import Command
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.take_back import CancelOutcome, SlotPost
from tests.usecase.publisher_service.machine.scene import FOLLOWED, MOST, ORG
from tests.usecase.publisher_service.machine.world import World
from tests.usecase.publisher_service.replica import CHANNELS


class Authors:
    def __init__(self, world: World) -> None:
        self.world = world

    # Drafts

    async def save(
        self,
        process: int,
        letter: str,
        *,
        approved: bool = True,
        new_text: bool = True,
        left: int = 2,
        brand: str | None = None,
    ) -> None:
        """Announces the draft, with the first targets `left`."""
        world, draft = self.world, self.world.draft(letter)
        draft.version += 1
        draft.revision += new_text or not draft.revision
        draft.brand = draft.brand if brand is None else brand
        text = f"{draft.accounts[0]}: {draft.id} in revision {draft.revision}"
        comments = [draft_pb2.FollowUp(channel=CHANNELS[0], text=text)] if letter in FOLLOWED else []
        message = draft_pb2.DraftContent(text=text, follow_ups=comments)
        content = message.SerializeToString(deterministic=True)
        saved = SavedDraft(
            organization_id=ORG,
            draft_id=draft.id,
            version=draft.version,
            revision=draft.revision,
            content=content,
            content_digest=hashlib.sha256(content).hexdigest(),
            approved=approved,
            targets=draft.targets(*draft.accounts[:left]),
            brand_id=draft.brand,
            campaign_id=draft.campaign,
            follow_ups={each.channel: 1 for each in comments},
        )
        world.events.append(saved)
        draft.saved = saved
        world.promised.drafts.pop(draft.id, None)
        await world.processes[process].save(saved, now=world.now)
        # Of concurrent ones the newest counts.
        world.promised.after_step(lambda: world.promised.drafts.update({draft.id: draft.saved or saved}))

    async def withdraw(self, process: int, letter: str) -> None:
        draft = self.world.draft(letter)
        below = draft.revision + 1
        before = await self.world.may_be_out()
        withdrawal = await self.world.processes[process].withdraw(ORG, draft.id, below)
        if not withdrawal.published:
            out = {row.id for row in before & await self.world.may_be_out() if row.draft_id == draft.id}
            if out - {*withdrawal.in_flight}:
                self.world.broken.append(f"the withdrawal of {draft.id} does not list {out - {*withdrawal.in_flight}}")
            promised = self.world.promised
            promised.withdrawn[draft.id] = below, frozenset(withdrawal.in_flight)
            promised.after_step(lambda: promised.forbidden.update({draft.id: below}))

    # Queue

    async def schedule(self, process: int, letter: str, account: str, *, ahead: timedelta, late: timedelta) -> None:
        """Gives the post a new slot, or moves the slot that it has."""
        world, draft = self.world, self.world.draft(letter)
        known = draft.slots.get(account)
        moves = known is not None and world.sequence % 2 == 0
        world.sequence += 1
        due = world.now + ahead
        draft.slots[account] = slot = Slot(
            organization_id=ORG,
            slot_id=known.slot_id if known and moves else f"slot-{world.sequence}",
            sequence=known.sequence if known and moves else world.sequence,
            revision=known.revision + 1 if known and moves else 1,
            draft_id=draft.id,
            targets=draft.targets(account),
            schedule_time=due,
            not_after=due + late,
            target_month="2026-03",
            traceparent="",
        )
        world.events.append(slot)
        world.commands.append(_command(slot, draft.revision))
        await world.processes[process].take(slot, now=world.now)

    async def approve(self, process: int, posts: Sequence[tuple[str, str]], *, new_text: bool, late: timedelta) -> None:
        """Approves posts, as they are or in a new revision, and gives them slots that are due."""
        for letter, account in posts:
            await self.save(process, letter, new_text=new_text)
            await self.schedule(process, letter, account, ahead=timedelta(0), late=late)

    async def cancel(self, process: int, letter: str, account: str) -> None:
        post = self._slot_post(letter, account)
        if post is None:
            return
        canceled = self.world.promised.canceled
        (taken,) = await self.world.processes[process].take_back(post)
        if taken.outcome is CancelOutcome.CANCELED and post.post_job_id not in self.world.urgent:
            canceled[post.post_job_id] = max(post.order, canceled.get(post.post_job_id, post.order))

    async def drop_slot(self, process: int, letter: str, account: str) -> None:
        """Has Queue cancel a slot that it has not dispatched."""
        world, post = self.world, self._slot_post(letter, account)
        if post is not None:
            world.events.append(post)
            world.commands = [each for each in world.commands if each.slot_id != post.slot_id]
            await world.processes[process].drop(post, now=world.now)

    def _slot_post(self, letter: str, account: str) -> SlotPost | None:
        draft = self.world.draft(letter)
        slot = draft.slots.get(account)
        if slot is None:
            return None
        return SlotPost(
            organization_id=ORG,
            draft_id=draft.id,
            target=slot.targets[0],
            slot_id=slot.slot_id,
            slot_revision=slot.revision,
            slot_sequence=slot.sequence,
        )

    # Schedule

    async def set_schedule(
        self,
        process: int,
        account: str,
        *,
        zone: str = "",
        enabled: bool = True,
        window: SendWindow | None = None,
        spacing: timedelta | None = None,
    ) -> None:
        world = self.world
        world.sequence += 1
        schedule = AccountSchedule(
            organization_id=ORG,
            social_account_id=account,
            version=world.sequence,
            time_zone=zone,
            enabled=enabled,
            window=window,
            min_spacing=spacing,
        )
        world.events.append(schedule)
        world.promised.schedules.pop(account, None)
        await world.processes[process].follow(schedule, now=world.now)
        world.promised.after_step(lambda: world.promised.keep_schedule(schedule))

    # all of them

    async def repeat_event(self, process: int, number: int) -> None:
        """Has an event come once more, after newer ones."""
        event, now = self.world.events[number % len(self.world.events)], self.world.now
        replica = self.world.processes[process]
        match event:
            case SavedDraft():
                await replica.save(event, now=now)
            case Slot():
                await replica.take(event, now=now)
            case SlotPost():
                await replica.drop(event, now=now)
            case AccountSchedule():
                await replica.follow(event, now=now)


def _command(slot: Slot, revision: int) -> Command:
    assert slot.not_after is not None
    return Command(
        organization_id=ORG,
        draft_id=slot.draft_id,
        target=slot.targets[0],
        slot_sequence=slot.sequence,
        slot_id=slot.slot_id,
        slot_revision=slot.revision,
        emission=1,
        schedule_time=slot.schedule_time,
        not_after=slot.not_after,
        content_revision=revision,
        max_attempts=MOST,
        traceparent="",
    )
