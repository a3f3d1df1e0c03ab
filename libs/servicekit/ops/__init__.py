"""Operations of every process: its stats, and what operators can do about dead letters."""

from servicekit.ops.operations import Number, Operations
from servicekit.ops.servicer import operations_servicer

__all__ = ["Number", "Operations", "operations_servicer"]
