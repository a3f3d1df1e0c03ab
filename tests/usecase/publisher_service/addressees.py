"""Posts to destinations inside accounts, on a replica."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from publisher_service.application.release_destinations import ReleaseDestinations
from publisher_service.application.update_destination import UpdateDestination
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.destination import Destination, DestinationChange, DestinationState
from publisher_service.domain.outcome import Rejected
from publisher_service.domain.post_job import Target
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, claims_in

REFUSED = Rejected(reason="DESTINATION_NOT_FOUND", message="there is no such chat")
BLOCKED = Rejected(reason="PEER_BLOCKED", message="she has blocked you", peer_blocked=True)


def a_chat(name: str = "@chat", account: str = "bot") -> Target:
    return Target(social_account_id=account, channel="facebook", destination=name)


def to_chat(draft: str, chat: Target) -> Command:
    return replace(a_command(draft), target=chat)


async def posts_to(replica: Replica, chat: Target, count: int, *, prefix: str = "p") -> list[Command]:
    """Saves drafts with one target each, this one, and returns their commands. Connects the account."""
    names = [f"{prefix}{number}" for number in range(count)]
    await replica.save(*(replace(a_draft(name, ""), targets=(chat,)) for name in names))
    await replica.connect(chat.social_account_id)
    # Nothing waits yet: the commands need not come from the line.
    await replica.write("update account_gate set lined = false, relabel = false, wake_time = null")
    return [to_chat(name, chat) for name in names]


async def all_at_once(replica: Replica, commands: Sequence[Command]) -> list[Claimed]:
    """Claims posts of one account although another is out, as late proof of an earlier attempt makes it happen."""
    claimed = []
    for command in commands:
        claimed += claims_in(await replica.claim([command]))
        await replica.write("update account_gate set open_job_id = null, lined = false")
    assert len(claimed) == len(commands)
    return claimed


async def the_destination(replica: Replica) -> Row[Any]:
    (row,) = await replica.rows("select * from destination")
    return row


async def switch(
    replica: Replica, chat: Target, state: DestinationState, *, note: str = "", etag: str = ""
) -> Destination:
    """Activates or deactivates a destination."""
    update = UpdateDestination(ledger=RequestLedger(replica.database, replica.clock), on_activated=_nothing)
    wanted = DestinationChange(organization_id="acme", target=chat, state=state, note=note, etag=etag)
    switched: Destination = await update(call("UpdateDestination"), wanted)
    return switched


def releasing(replica: Replica) -> ReleaseDestinations:
    outbox = Outbox(Uuid7Source(), lambda rows: None)
    return ReleaseDestinations(database=replica.database, clock=replica.clock, outbox=outbox, wake_lines=_nothing)


def _nothing() -> None:
    pass
