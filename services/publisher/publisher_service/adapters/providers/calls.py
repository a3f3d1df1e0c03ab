"""HTTP calls as adapters make them: of each failure it is known whether the request may have left."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Final

from publisher_service.adapters.media.refusals import MediaUnavailable
from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from publisher_service.domain.outcome import Ambiguous, NotSent
from servicekit.record import record

_JSON: Final = {"Content-Type": "application/json"}


@record(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A read got no answer; it proves nothing."""

    message: str


class Calls:
    """Calls of one provider. `name` is for messages; a path may be a whole query, and must hold no secret."""

    def __init__(self, name: str, origin: HttpOrigin, *, timeout: timedelta) -> None:
        self._name = name
        self._origin = origin
        self._timeout = timeout

    async def read(self, path: str, headers: Mapping[str, str]) -> Answer | Unanswered:
        """Reads something; a lost answer is nothing but that."""
        try:
            return await self._origin.get(path, headers, timeout=self._timeout)
        except (NotConnected, ConnectionLost, TimeoutError) as error:
            return Unanswered(message=f"{self._name} gave no answer: {type(error).__name__}")

    async def post(
        self, path: str, headers: Mapping[str, str], body: bytes, *, content: Mapping[str, str] = _JSON
    ) -> Answer | NotSent | Ambiguous:
        """Makes one request and never repeats it. `content` are the headers that say what the body is."""
        try:
            return await self._origin.post(path, {**headers, **content}, body, timeout=self._timeout)
        except NotConnected as error:
            return _unreachable(self._name, error)
        except TimeoutError:
            return Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=f"{self._name} did not answer in time")
        except ConnectionLost as error:
            return Ambiguous(reason="CONNECTION_LOST", message=f"the connection to {self._name} broke: {error}")

    async def post_pieces(
        self, path: str, headers: Mapping[str, str], pieces: AsyncIterator[bytes], *, size: int, timeout: timedelta
    ) -> Answer | NotSent | Ambiguous:
        """Makes one request with a long body, and never repeats it.

        A request of which the end has not left is none: the server still waits for the rest when the connection breaks.
        """
        body = _Counted(pieces, size)
        try:
            return await self._origin.upload("POST", path, headers, body.pieces(), size=size, timeout=timeout)
        except NotConnected as error:
            return _unreachable(self._name, error)
        except (MediaUnavailable, ConnectionLost, OSError, EOFError) as error:  # TimeoutError is an OSError
            if not body.is_whole:
                reason = "MEDIA_UNAVAILABLE" if isinstance(error, MediaUnavailable) else "UPLOAD_INCOMPLETE"
                return NotSent(reason=reason, message=f"{self._name} got no whole request: {_named(error)}")
            if isinstance(error, TimeoutError):
                return Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=f"{self._name} did not answer in time")
            return Ambiguous(reason="CONNECTION_LOST", message=f"the connection to {self._name} broke: {_named(error)}")


class _Counted:
    """The pieces of a body. `is_whole` as soon as the last of its bytes may leave."""

    def __init__(self, pieces: AsyncIterator[bytes], size: int) -> None:
        self._pieces = pieces
        self._left = size
        self.is_whole = size == 0

    async def pieces(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            self._left -= len(piece)
            self.is_whole = self._left <= 0
            yield piece
        if self._left:
            raise EOFError("the body has another length than was said")


def _unreachable(name: str, error: NotConnected) -> NotSent:
    return NotSent(reason="CONNECTION_REFUSED", message=f"{name} cannot be reached: {error}", is_unreachable=True)


def _named(error: Exception) -> str:
    return str(error) if isinstance(error, ConnectionLost | MediaUnavailable) else type(error).__name__
