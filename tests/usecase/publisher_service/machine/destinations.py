"""The health of destinations, counted beside Publisher from the answers of the provider."""

from collections import Counter
from typing import Any

from sqlalchemy import Row

from publisher_service.domain.destination import MOST_FAILURES
from publisher_service.domain.post_job import Target
from tests.usecase.publisher_service.machine.snapshot import Snapshot
from tests.usecase.publisher_service.machine.world import World


class Destinations:
    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: set[tuple[str, int, str]] = set()
        self._failures: Counter[Target] = Counter()
        self._have_blocked: set[Target] = set()

    def check(self, seen: Snapshot) -> None:
        """A destination is inactive after so many refusals in a row, a block, or on request, and only then."""
        refused: Counter[Target] = Counter()
        accepted, blocking = set(), set()
        for answer in self._new(seen):
            target = _target(answer)
            if answer.state == "ACCEPTED":
                accepted.add(target)
            else:
                refused[target] += 1
                if answer.error_reason == "PEER_BLOCKED":
                    blocking.add(target)
        self._have_blocked |= blocking
        promised, switched = self._world.promised, self._world.switched
        promised.inactive = {_target(row) for row in seen.destinations if row.state == "INACTIVE"}
        assert blocking <= promised.inactive | switched, f"{blocking} have blocked"
        for row in seen.destinations:
            target = _target(row)
            if target not in switched:
                # A post that is out makes the refusals before it forgotten; which came first is not known here.
                most = refused[target]
                in_a_row = range(most + 1) if target in accepted else [self._failures[target] + most]
                assert row.failures in in_a_row, f"{row}: refused {in_a_row} times in a row"
                assert row.state == "INACTIVE" or row.failures < MOST_FAILURES, f"{row} is still active"
            why = {"FAILURES": row.failures >= MOST_FAILURES, "BLOCKED_BY_PEER": target in self._have_blocked}
            assert why.get(row.state_reason, True), f"{row} is inactive"
            self._failures[target] = row.failures
        switched.clear()

    def _new(self, seen: Snapshot) -> list[Row[Any]]:
        new = [each for each in seen.answers if (each.post_job_id, each.fence, each.state) not in self._seen]
        self._seen |= {(each.post_job_id, each.fence, each.state) for each in new}
        return new


def _target(row: Row[Any]) -> Target:
    return Target(social_account_id=row.social_account_id, channel=row.channel, destination=row.destination)
