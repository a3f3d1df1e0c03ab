"""What every process tells those who operate it, and what they can have done about dead letters."""

from servicekit.ops.operations import Number, Operations
from servicekit.ops.servicer import operations_servicer

__all__ = ["Number", "Operations", "operations_servicer"]
