"""Refusals byte for byte, to compare what callers may learn from them."""

from typing import Any

import grpc
import pytest


async def raw_refusal(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> tuple[grpc.StatusCode, str | None, bytes]:
    """Asserts that the call is refused; returns code, text and details as they came."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    metadata = dict(refused.value.trailing_metadata())
    details = metadata["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    return refused.value.code(), refused.value.details(), details
