"""The post that tests send to the sandbox provider, and the limits of its adapter."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.domain.credentials import Credentials

TOKEN = "sandbox-canary-91b7"
CREDENTIALS = Credentials(access_token=TOKEN)
POST = Post(
    external_account_id="ext-page",
    access_token=TOKEN,
    channel="facebook",
    destination="",
    text="hello",
    idempotency_key="job-1",
)
LIMITS = Limits(request_timeout=timedelta(seconds=1))
AdapterAt = Callable[..., SandboxAdapter]


def message_of(outcome: Any) -> str:
    """Returns the text of an outcome; empty when it has none."""
    return str(getattr(outcome, "message", ""))
