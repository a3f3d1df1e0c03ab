"""Refused calls, as a client sees them."""

from typing import Any

import grpc
import pytest

from servicekit.faults import Fault
from servicekit.rpc import fault_from_error


async def refusal_of(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> tuple[grpc.StatusCode, Fault]:
    """Asserts that the call is refused, and returns its code and fault."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), fault_from_error(refused.value)
