"""Opinions: what the checks of a claim would say of jobs as they stand, without a lock and without a claim."""

from collections.abc import Sequence
from datetime import datetime

from publisher_service.adapters.postgres.checks import OPINION
from publisher_service.adapters.postgres.claim import UNLOCKED
from publisher_service.adapters.postgres.looked_at import looked_at_arguments
from publisher_service.domain.claim import Command
from publisher_service.domain.limits import LimitDefaults
from servicekit.pg.session import Session, Statement

_OPINIONS = Statement(f"select t.ordinal, {OPINION} as opinion {UNLOCKED} order by t.ordinal")


async def opinions(session: Session, commands: Sequence[Command], *, now: datetime, limits: LimitDefaults) -> list[str]:
    """Returns the verdict on each command, no matter what waits in line. No two may name the same job."""
    if not commands:
        return []
    arguments = looked_at_arguments(commands, [], now=now, from_line=True, limits=limits)
    found = {row.ordinal: row.opinion for row in await session.fetch(_OPINIONS, arguments)}
    return [found[place] for place in range(1, len(commands) + 1)]
