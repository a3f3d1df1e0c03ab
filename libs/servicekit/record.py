"""Makes values cheap that every post needs: frozen for mypy, which checks all code and tests, and plain for Python.

A frozen dataclass sets each field by a call: 3.8 of the 4.3 us of a post job, which has 35. A post makes two of them,
and a dozen smaller values.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool, kw_only: bool):
        assert frozen, "a record is frozen, as far as mypy knows"
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=True)


__all__ = ["record"]
