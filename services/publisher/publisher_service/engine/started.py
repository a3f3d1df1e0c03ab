"""Chooses the open attempts that are announced as started: posts that are slow for their provider, and not too many.

An event for every post of a slow provider would double the events just when everything is slow.
"""

from collections.abc import Iterable, Mapping

from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane

_AFTER = 1.0
# A post is slow if it takes so many times as long as its provider does at present.
_TIMES = 3.0
# Bounds the events to 2 % of the posts and a few; rare slow posts are all announced.
_AT_ONCE = 25.0
_PER_SETTLED_POST = 0.02
_PER_SECOND = 0.1


class Started:
    def __init__(self, lanes: Mapping[str, ProviderLane]) -> None:
        """`lanes` are by the name of the provider."""
        self._lanes = lanes
        self._allowed = _AT_ONCE
        self._looked = 0.0
        self._settled = 0

    def choose(self, opened: Iterable[HeldCommand], *, settled: int, now: float) -> list[HeldCommand]:
        """Returns those to announce now, the longest open first; `settled` counts the posts settled so far."""
        earned = (settled - self._settled) * _PER_SETTLED_POST + (now - self._looked) * _PER_SECOND
        self._allowed = min(self._allowed + earned, _AT_ONCE)
        self._settled, self._looked = settled, now
        slow = [each for each in opened if not each.is_announced and self._is_slow(each, now)]
        chosen = sorted(slow, key=lambda each: each.claim_started)[: int(self._allowed)]
        self._allowed -= len(chosen)
        return chosen

    def _is_slow(self, held: HeldCommand, now: float) -> bool:
        assert held.claimed is not None
        usual = self._lanes[held.claimed.provider].seconds
        return now - held.claim_started > max(_AFTER, _TIMES * usual)
