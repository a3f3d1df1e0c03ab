"""The two-part keys by which rows are found, as arrays for `unnest`."""

from collections.abc import Iterable

Key = tuple[str, str]
"""An organization and the id of one of its jobs, drafts or accounts."""


def key_arrays(keys: Iterable[Key], second: str) -> dict[str, list[str]]:
    """Returns the parameters `organization_ids` and `second`, sorted and without repeats."""
    unique = sorted(set(keys))
    return {"organization_ids": [key[0] for key in unique], second: [key[1] for key in unique]}
