"""Refused calls, as a client sees them."""

from collections.abc import Awaitable
from typing import Any

import grpc
import pytest

from servicekit.faults import Fault
from servicekit.rpc import calling, fault_from_error


async def refusal_of(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> tuple[grpc.StatusCode, Fault]:
    """Asserts that the call is refused, and returns its code and fault."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), fault_from_error(refused.value)


async def fault_of(call: Awaitable[object]) -> Fault:
    """Asserts that the call is refused, and returns the fault as another service would see it."""
    with pytest.raises(Fault) as refused, calling():
        await call
    return refused.value


def fields_at_fault(fault: Fault) -> list[str]:
    return [violation.field for violation in fault.violations]
