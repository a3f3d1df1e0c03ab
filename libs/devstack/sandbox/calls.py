"""Requests as the sandbox provider handles them, and the answers that they get."""

import json
from dataclasses import dataclass

from devstack.sandbox.faults import Operation
from devstack.sandbox.posts import Post

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Facts of a request that the ledger records with its outcome."""

    operation: Operation
    account: str
    arrival: str
    """Time at which the request came, on the provider's clock."""
    key: str = ""
    post: Post | None = None
    quotas: str = ""
    """Header lines that say what is left of the quotas."""

    @property
    def text(self) -> str:
        return self.post.text if self.post else ""


def body_of(answer: object) -> bytes:
    return encode(answer).encode()


def error_body(code: str, message: str, **more: object) -> bytes:
    return encode({"error": {"code": code, "message": message, **more}}).encode()
