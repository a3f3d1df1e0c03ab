"""The context of a piece of work: log lines show it, and calls to other services pass it on."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
organization_id: ContextVar[str] = ContextVar("organization_id", default="")
# The monotonic time (`time.monotonic`) after which nobody waits for the answer.
deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
