"""What is newer: a version that the owner's database counts under a lock, never a clock."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def newest(items: Iterable[T], *, key: Callable[[T], Hashable], version: Callable[[T], int]) -> list[T]:
    """Returns the item of the highest version of each key, in the order in which the keys appear.

    Of two items of one version the first counts: the second is a copy.
    """
    found: dict[Hashable, T] = {}
    for item in items:
        known = found.get(key(item))
        if known is None or version(known) < version(item):
            found[key(item)] = item
    return list(found.values())
