"""A fake of Telegram's Bot API: it sends, and shows a bot nothing of what it has sent.

It knows no keys and ignores no repeat. Chats block, kick and delete bots, groups move, and floods have to wait.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import web

from devstack.networks.network import Network, operation
from servicekit.clock import Clock

_MOST_BYTES = {"photo": 10 * 1024 * 1024, "video": 50 * 1024 * 1024, "document": 50 * 1024 * 1024}
_LONGEST_TEXT, _LONGEST_CAPTION = 4096, 1024


@dataclass
class Chat:
    id: int
    type: str = "channel"
    username: str = ""
    # Why nothing can be sent there, as a description of a 403.
    forbids: str = ""
    moved_to: int | None = None
    # Until when it takes nothing.
    flooded: datetime | None = None
    messages: int = field(default=0)


class Refusal(Exception):
    """An error answer."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters
        self.body: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
        if parameters:
            self.body["parameters"] = parameters


class Telegram(Network):
    name: ClassVar[str] = "telegram"

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        super().__init__(ledger, clock)
        # By their tokens: the number of the bot, which is the first part of its token, and its username.
        self.bots: dict[str, str] = {}
        self.chats: dict[str, Chat] = {}

    def add_bot(self, token: str, username: str) -> None:
        self.bots[token] = username

    def furnish(self) -> str:
        """Makes a bot and a channel."""
        self.add_bot("1:sandbox-token", "sandbox_bot")
        self.add_chat(Chat(-1001, username="sandbox"))
        return "connect bot 1 with 1:sandbox-token, and send to @sandbox"

    def add_chat(self, chat: Chat) -> Chat:
        self.chats[str(chat.id)] = chat
        if chat.username:
            self.chats[f"@{chat.username}"] = chat
        return chat

    def flood(self, chat: Chat, seconds: float) -> None:
        """Has the chat take nothing for this long."""
        chat.flooded = self.clock.now() + timedelta(seconds=seconds)

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/bot{token}/getMe", self.get_me),
            web.post("/bot{token}/sendMessage", self.send_message),
            *(web.post(f"/bot{{token}}/send{kind.capitalize()}", self.send_file) for kind in _MOST_BYTES),
            web.post("/bot{token}/sendMediaGroup", self.send_group),
            web.route("*", "/bot{token}/{method}", self.unknown),
        )

    def account_of(self, request: web.Request) -> str:
        return request.match_info.get("token", "").partition(":")[0]

    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        wait = int(seconds)
        return _refused(Refusal(429, f"Too Many Requests: retry after {wait}", retry_after=wait))

    def refused(self, request: web.Request) -> web.Response:
        return _refused(Refusal(400, "Bad Request: message is too long"))

    def error(self) -> Mapping[str, Any]:
        return Refusal(500, "Internal Server Error: Request aborted").body

    @operation("getMe")
    async def get_me(self, request: web.Request) -> web.Response:
        token = request.match_info["token"]
        if token not in self.bots:
            return _refused(Refusal(401, "Unauthorized"))
        bot = {"id": int(token.partition(":")[0]), "is_bot": True, "username": self.bots[token]}
        return web.json_response({"ok": True, "result": bot})

    @operation("sendMessage")
    async def send_message(self, request: web.Request) -> web.Response:
        try:
            fields = await self._fields(request)
            chat = self._chat(request, fields)
            text = fields.get("text", "")
            if not text:
                raise Refusal(400, "Bad Request: message text is empty")
            if _length(text) > _LONGEST_TEXT:
                raise Refusal(400, "Bad Request: message is too long")
        except Refusal as refusal:
            return _refused(refusal)
        return web.json_response({"ok": True, "result": self._sent(request, chat, text, [], fields)})

    @operation("sendFile")
    async def send_file(self, request: web.Request) -> web.Response:
        kind = request.path.rsplit("/send", 1)[-1].lower()
        try:
            fields = await self._fields(request)
            chat = self._chat(request, fields)
            data = self._file(fields, fields.get(kind, ""), kind)
            caption = self._caption(fields.get("caption", ""))
        except Refusal as refusal:
            return _refused(refusal)
        return web.json_response({"ok": True, "result": self._sent(request, chat, caption, [data], fields)})

    @operation("sendMediaGroup")
    async def send_group(self, request: web.Request) -> web.Response:
        try:
            fields = await self._fields(request)
            chat = self._chat(request, fields)
            items = json.loads(fields.get("media", "[]"))
            kinds = {each["type"] for each in items}
            if not 2 <= len(items) <= 10:
                raise Refusal(400, "Bad Request: there must be from 2 to 10 files in an album")
            if "document" in kinds and len(kinds) > 1:
                raise Refusal(400, "Bad Request: document can't be mixed with other media types")
            files = [self._file(fields, each["media"], each["type"]) for each in items]
            caption = self._caption(items[0].get("caption", ""))
        except Refusal as refusal:
            return _refused(refusal)
        first = self._sent(request, chat, caption, files, fields)
        others = [{**first, "message_id": first["message_id"] + number} for number in range(1, len(files))]
        chat.messages += len(others)
        return web.json_response({"ok": True, "result": [first, *others]})

    @operation("unknown")
    async def unknown(self, request: web.Request) -> web.Response:
        """Answers what nobody may ask: there is no way to read messages."""
        self.problem(f"a client asked for {request.match_info['method']}")
        return _refused(Refusal(404, "Not Found"))

    async def _fields(self, request: web.Request) -> dict[str, Any]:
        if (token := request.match_info["token"]) in str(request.query) + str(dict(request.headers)):
            self.problem("a token was sent apart from the path")
        if token not in self.bots:
            raise Refusal(401, "Unauthorized")
        if request.content_type == "application/json":
            body = await request.json()
            return {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
        fields: dict[str, Any] = {}
        async for part in await request.multipart():
            raw = bytes(await part.read())  # type: ignore[union-attr]
            fields[str(part.name)] = raw if part.filename else raw.decode()  # type: ignore[union-attr]
        return fields

    def _chat(self, request: web.Request, fields: Mapping[str, Any]) -> Chat:
        """Returns the chat of a request. Raises Refusal if nothing can be sent there."""
        if not (name := fields.get("chat_id", "")):
            raise Refusal(400, "Bad Request: chat_id is empty")
        chat = self.chats.get(name)
        if chat is None:
            raise Refusal(400, "Bad Request: chat not found")
        if chat.moved_to is not None:
            raise Refusal(
                400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to
            )
        if chat.forbids:
            raise Refusal(403, f"Forbidden: {chat.forbids}")
        if chat.flooded is not None and chat.flooded > self.clock.now():
            wait = int((chat.flooded - self.clock.now()).total_seconds()) + 1
            raise Refusal(429, f"Too Many Requests: retry after {wait}", retry_after=wait)
        reply = json.loads(fields.get("reply_parameters", "{}")).get("message_id", 0)
        if reply > chat.messages:
            raise Refusal(400, "Bad Request: message to be replied not found")
        return chat

    def _file(self, fields: Mapping[str, Any], place: str, kind: str) -> bytes:
        data = fields.get(place.removeprefix("attach://"))
        if not isinstance(data, bytes):
            raise Refusal(400, f"Bad Request: there is no {kind} in the request")
        if len(data) > _MOST_BYTES[kind]:
            raise Refusal(413, "Request Entity Too Large")
        return data

    def _caption(self, text: str) -> str:
        if _length(text) > _LONGEST_CAPTION:
            raise Refusal(400, "Bad Request: message caption is too long")
        return text

    def _sent(
        self, request: web.Request, chat: Chat, text: str, files: list[bytes], fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        chat.messages += 1
        self.effect(
            self.account_of(request),
            id=f"{chat.id}/{chat.messages}",
            channel="telegram",
            chat=chat.id,
            text=text,
            media=[hashlib.sha256(data).hexdigest() for data in files],
            reply=json.loads(fields.get("reply_parameters", "{}")).get("message_id"),
        )
        described = {"id": chat.id, "type": chat.type} | ({"username": chat.username} if chat.username else {})
        return {"message_id": chat.messages, "chat": described, "date": int(self.clock.now().timestamp())}


def _length(text: str) -> int:
    """Telegram counts in code units of UTF-16."""
    return len(text.encode("utf-16-le")) // 2


def _refused(refusal: Refusal) -> web.Response:
    wait = refusal.parameters.get("retry_after")
    headers = {"Retry-After": str(wait)} if wait is not None else {}
    return web.json_response(refusal.body, status=refusal.status, headers=headers)
