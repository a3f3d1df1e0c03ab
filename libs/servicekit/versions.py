"""Picks the newest of several versions, which the owner's database counts under a lock; no clock decides."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def newest(items: Iterable[T], *, key: Callable[[T], Hashable], version: Callable[[T], int]) -> list[T]:
    """Returns the item with the highest version of each key, in the order in which the keys appear.

    Of two items with the same version the first counts: the second is a copy.
    """
    found: dict[Hashable, T] = {}
    for item in items:
        name = key(item)
        known = found.get(name)
        if known is None or version(known) < version(item):
            found[name] = item
    return list(found.values())
