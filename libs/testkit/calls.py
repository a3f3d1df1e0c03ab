"""Mutating calls as a use case gets them, without the request and the response of an RPC."""

import pickle
from typing import Any

from servicekit.pg.ledger import Call


def call(
    method: str, *, organization_id: str = "acme", request_id: str = "", digest: bytes = b"same"
) -> Call[Any, Any]:
    """Returns a call that is answered with the use case's own result."""
    return Call(
        organization_id=organization_id,
        method=method,
        request_id=request_id,
        request_digest=digest,
        answer=lambda result: result,
        encode=pickle.dumps,
        decode=pickle.loads,
    )
