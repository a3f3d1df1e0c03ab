"""Telegram's Bot API: messages in chats and channels. It knows no keys and shows a bot nothing of what it has sent.

https://core.telegram.org/bots/api
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from channels.rules import ChannelRules
from channels.texts import with_link
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof, ProviderDown
from publisher_service.adapters.providers.answers import number_in, object_in, object_of, text_in
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.media_source import MediaFile, MediaSource, without_media
from publisher_service.adapters.providers.multipart import Form, FormFile
from publisher_service.adapters.providers.telegram_errors import moved_to, telegram_error
from publisher_service.adapters.providers.telegram_rules import TELEGRAM_RULES, kind_of, too_large
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Accepted, Ambiguous, Finding, NoProof, NotSent, Outcome, Rejected
from publisher_service.domain.preparation import Preparing, Processing, Ready, Unfit
from publisher_service.domain.provider_error import ErrorClass, outcome_of
from servicekit.clock import Clock

_TEXT: Final = "text"
# Files go along with the one request.
_LONGER_WITH_MEDIA: Final = 6
_NAME: Final = re.compile(r"(-?[0-9]{1,20})/([0-9]{1,12})")
_USERNAME: Final = re.compile(r"[A-Za-z0-9_]{4,32}")
_MIXED: Final = "documents go together with documents alone on Telegram"


class TelegramAdapter:
    name: Final = "telegram"
    rules: Final[Mapping[str, ChannelRules]] = {"telegram": TELEGRAM_RULES}
    proof: Final = Proof.BLIND

    def __init__(self, origin: HttpOrigin, limits: Limits, *, media: MediaSource, clock: Clock) -> None:
        # No look can prove anything, so a person is asked at once. Telegram takes about 30 messages of a bot a second.
        self.limits: Final = replace(
            limits,
            request_timeout=_LONGER_WITH_MEDIA * limits.request_timeout,
            unknown_deadline=timedelta(0),
            senders=min(limits.senders, 16),
        )
        self._short = limits.request_timeout
        self._calls = Calls("Telegram", origin, timeout=limits.request_timeout)
        self._media = media
        self._clock = clock

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        answer = await self._calls.read(_path(credentials.access_token, "getMe"), {})
        if isinstance(answer, Unanswered):
            raise ProviderDown(answer.message)
        if answer.status != 200:
            error = telegram_error(answer)
            if error.kind is ErrorClass.AUTH_REVOKED:
                raise CredentialsRefused("Telegram knows no bot with this token")
            raise ProviderDown(error.message)
        bot = object_in(object_of(answer.body), "result")
        number, name = number_in(bot, "id"), text_in(bot, "username")
        wanted = external_account_id.removeprefix("@").lower()
        if not wanted or wanted not in (str(number), name.lower()):
            raise CredentialsRefused(f"the token is of another bot: {name}")

    async def prepare(self, post: Post) -> Preparing:
        """Opens the media one by one, so that a bad file is found before the post is due."""
        return await self._look_at_media(post, "")

    async def check(self, post: Post) -> Preparing:
        return await self._look_at_media(post, post.handle)

    async def send(self, post: Post) -> Outcome:
        """Sends the bytes that were approved along with the request."""
        if not (chat := _chat(post)):
            return Rejected(reason="DESTINATION_REQUIRED", message="a message on Telegram needs a chat")
        end = self._clock.monotonic() + self.limits.request_timeout.total_seconds()
        async with AsyncExitStack() as stack:
            try:
                # The rest of the time is for the request.
                async with asyncio.timeout(self.limits.request_timeout.total_seconds() / 2):
                    files = [
                        await stack.enter_async_context(self._media.open(post.organization_id, each))
                        for each in post.media
                    ]
            except MediaRefused as error:
                return Rejected(reason=error.reason, message=error.message)
            except (MediaUnavailable, TimeoutError) as error:
                return NotSent(reason="MEDIA_UNAVAILABLE", message=str(error) or "the media did not come in time")
            return await self._deliver(post, chat, files, end)

    async def look(self, post: Post) -> Finding:
        return NoProof(message="Telegram shows a bot nothing of what it has sent")

    async def _deliver(self, post: Post, chat: str, files: Sequence[MediaFile], end: float) -> Outcome:
        answer = await self._request(post, chat, files, end)
        if isinstance(answer, Answer) and (moved := moved_to(answer)) is not None:
            # The refusal has sent nothing, and names the chat that the group has become.
            answer = await self._request(post, str(moved), files, end)
        if not isinstance(answer, Answer):
            return answer
        return accepted(answer) if answer.status == 200 else outcome_of(telegram_error(answer))

    async def _request(
        self, post: Post, chat: str, files: Sequence[MediaFile], end: float
    ) -> Answer | NotSent | Ambiguous:
        left = timedelta(seconds=end - self._clock.monotonic())
        if left <= timedelta(0):
            return NotSent(reason="TOO_LITTLE_TIME", message="no time was left for the request")
        method, fields = _message(post, chat, files)
        path = _path(post.access_token, method)
        if not files:
            return await self._calls.post(path, {}, json.dumps(fields).encode())
        form = Form(
            [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in fields.items()],
            [FormFile(name=f"file{number}", file=file) for number, file in enumerate(files)],
        )
        headers = {"Content-Type": form.content_type}
        return await self._calls.post_pieces(path, headers, form.pieces(), size=form.size, timeout=left)

    async def _look_at_media(self, post: Post, seen: str) -> Preparing:
        """Opens the next of the media. The handle has a letter for each that was seen."""
        if not _chat(post):
            return Unfit(reason="DESTINATION_REQUIRED", message="a message on Telegram needs a chat")
        if not post.media:
            return Ready(handle=_TEXT)
        if len(seen) < len(post.media):
            try:
                async with self._media.open(post.organization_id, post.media[len(seen)]) as file:
                    if too_large(file.facts):
                        return Unfit(reason="MEDIA_TOO_LARGE", message="Telegram takes no file of this size from a bot")
                    seen += kind_of(file.facts)[0]
            except (MediaRefused, MediaUnavailable) as error:
                return without_media(error)
        if "d" in seen and set(seen) != {"d"}:
            return Unfit(reason="MEDIA_CANNOT_MIX", message=_MIXED)
        return Ready(handle=seen) if len(seen) == len(post.media) else Processing(handle=seen)


def _path(token: str, method: str) -> str:
    """Returns the path of a method. It holds the token: no message may have it."""
    return f"/bot{quote(token, safe=':')}/{method}"


def _chat(post: Post) -> str:
    """Returns where the message goes: into the chat of the one that it answers, which may have moved."""
    follows = _NAME.fullmatch(post.follows)
    return follows[1] if follows else post.destination


def _message(post: Post, chat: str, files: Sequence[MediaFile]) -> tuple[str, dict[str, Any]]:
    """Returns the method and its fields. Without a parse mode every text is shown as it is."""
    text = with_link(post.text, post.link)
    common: dict[str, Any] = {"chat_id": chat}
    if follows := _NAME.fullmatch(post.follows):
        common["reply_parameters"] = {"message_id": int(follows[2])}
    if not files:
        return "sendMessage", common | {"text": text}
    caption = {"caption": text} if text else {}
    if len(files) == 1:
        (file,) = files
        kind = kind_of(file.facts)
        return f"send{kind.capitalize()}", common | {kind: "attach://file0"} | caption | _shape(file)
    items = [
        {"type": kind_of(file.facts), "media": f"attach://file{number}", **_shape(file)}
        for number, file in enumerate(files)
    ]
    # A group shows the caption of its first item.
    return "sendMediaGroup", common | {"media": [items[0] | caption, *items[1:]]}


def _shape(file: MediaFile) -> dict[str, Any]:
    """Returns what Telegram does not find out about a video by itself."""
    facts = file.facts
    if kind_of(facts) != "video":
        return {}
    duration = {"duration": round(facts.duration.total_seconds())} if facts.duration else {}
    size = {"width": facts.width, "height": facts.height} if facts.width and facts.height else {}
    return {**duration, **size, "supports_streaming": True}


def accepted(answer: Answer) -> Outcome:
    """Returns what a success means; of an album the first message counts."""
    body = object_of(answer.body)
    result = body.get("result")
    first = result[0] if isinstance(result, list) and result else result
    message = first if isinstance(first, dict) else {}
    chat = object_in(message, "chat")
    chat_id, message_id = number_in(chat, "id"), number_in(message, "message_id")
    if body.get("ok") is not True or chat_id is None or message_id is None or message_id < 0:
        return Ambiguous(reason="UNREADABLE_ANSWER", message="Telegram accepted, but its answer cannot be read")
    return Accepted(
        external_id=f"{chat_id}/{message_id}",
        external_url=_link(chat, chat_id, message_id),
        publish_time=_time(number_in(message, "date")),
    )


def _link(chat: Mapping[str, Any], chat_id: int, message_id: int) -> str:
    """Returns the link of a message; private chats and small groups have none."""
    if chat.get("type") not in ("channel", "supergroup"):
        return ""
    if _USERNAME.fullmatch(text_in(chat, "username")):
        return f"https://t.me/{chat['username']}/{message_id}"
    return f"https://t.me/c/{str(chat_id)[4:]}/{message_id}" if str(chat_id).startswith("-100") else ""


def _time(seconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 < seconds < 1 << 33 else None
