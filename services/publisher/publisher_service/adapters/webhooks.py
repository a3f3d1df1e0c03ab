"""Posts messages to webhooks, which users named: signed, at the address that was checked, and never redirected."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from publisher_service.adapters.outside.http_calls import OutsideAnswer, call
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.refusals import AddressRefused, AnswerLost, Unreachable
from publisher_service.adapters.standard_webhooks import signed
from publisher_service.domain.delivery import Accepted, NotAccepted, Result
from servicekit.run.settings import Secret

_GONE: Final = 410
# Standard Webhooks: the receiver, or what stands before it, has too much to do.
_TOO_MANY: Final = frozenset({429, 502, 504})
_LONGEST_WAIT: Final = timedelta(hours=24)
# Nothing of an answer counts but its head.
_LONGEST_ANSWER: Final = 1024


class Webhooks:
    def __init__(self, outside: Outside, *, timeout: timedelta) -> None:
        self._outside = outside
        self.timeout = timeout

    def require_url(self, url: str, *, field: str) -> str:
        """Returns the URL as it is called. Raises InvalidField if the rules forbid it; looks nothing up."""
        try:
            return self._outside.read_url(url).text
        except AddressRefused as refused:
            raise refused.as_fault(field) from None

    async def post(
        self,
        organization_id: str,
        url: str,
        message_id: str,
        body: bytes,
        secrets: Sequence[Secret],
        *,
        at: datetime,
    ) -> Result:
        """Makes one attempt. A repeat of it has the same id, by which the receiver knows it."""
        headers = {
            "User-Agent": "PostFlow",
            "Content-Type": "application/json",
            **signed(message_id, body, secrets, at=at),
        }
        try:
            answer = await call(
                self._outside,
                organization_id,
                self._outside.read_url(url),
                method="POST",
                headers=headers,
                body=body,
                timeout=self.timeout,
                most=_LONGEST_ANSWER,
            )
        except (AddressRefused, Unreachable, AnswerLost) as failure:
            return NotAccepted(reason=str(failure.reason), message=failure.message)
        return _result(answer, at)


def asked_wait(headers: Mapping[bytes, bytes], *, now: datetime) -> timedelta | None:
    """Returns how long the server asks us to wait, in seconds or as a date; None if it does not, or says nonsense."""
    text = headers.get(b"retry-after", b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), _LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta(0)), _LONGEST_WAIT)


def _result(answer: OutsideAnswer, now: datetime) -> Result:
    if 200 <= answer.status < 300:
        return Accepted()
    return NotAccepted(
        reason=f"HTTP_{answer.status}",
        # Not a word of its body, which may repeat anything.
        message=f"the webhook answered {answer.status}",
        is_gone=answer.status == _GONE,
        is_throttled=answer.status in _TOO_MANY,
        retry_after=asked_wait(answer.headers, now=now),
    )
