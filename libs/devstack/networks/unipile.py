"""Unipile: an API over mailboxes and LinkedIn accounts, with one key for all of them.

It shows what was sent: e-mails, messages in chats, and invitations as long as they are pending. A member has another id
for each account. Mail is remembered by its key until a restart, as the vendor says.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from aiohttp import BodyPartReader, web

from devstack.networks.network import Network, operation
from servicekit.clock import Clock

KEY = "unipile-key-91fe03b7"
MAILBOX = "acc-mail-1"
LINKEDIN = "acc-linkedin-1"
DISCONNECTED = "acc-lost-1"
_LONGEST_NOTE = 300
_RECENTLY = timedelta(days=21)
_MOST_PER_PAGE = 250


class Refusal(Exception):
    def __init__(self, status: int, kind: str, detail: str = "") -> None:
        super().__init__(kind)
        self.status, self.kind, self.detail = status, kind, detail

    def answer(self) -> web.Response:
        title = self.kind.replace("_", " ").capitalize()
        body = {"title": title, "detail": self.detail or None, "instance": None, "type": f"errors/{self.kind}"}
        return web.json_response(body | {"status": self.status}, status=self.status)


def member_id(account: str, public: str) -> str:
    """Returns the id of a member as an account sees it."""
    return f"ACoAA{sha256(f'{account} {public}'.encode()).hexdigest()[:34]}"


class Unipile(Network):
    name: ClassVar[str] = "unipile"

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None, *, key: str = KEY) -> None:
        super().__init__(ledger, clock)
        self.key = key
        # The state of each account; `OK` for one that works.
        self.accounts = {MAILBOX: "OK", LINKEDIN: "OK", DISCONNECTED: "CREDENTIALS"}
        # Public names of members.
        self.members = {"grace-hopper", "alan-turing"}
        self.related = {"grace-hopper"}
        self.emails: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.chats: dict[str, dict[str, Any]] = {}
        self.invitations: list[dict[str, Any]] = []
        self.inmails_left = 5
        self.per_page = _MOST_PER_PAGE
        self._by_key: dict[str, tuple[object, dict[str, Any]]] = {}
        self._count = 0

    def restart(self) -> None:
        """Forgets the keys of mails, as the vendor's restarts do."""
        self._by_key.clear()

    def accept(self, invitation_id: str) -> None:
        """Has a member accept an invitation: it is not pending any more."""
        self.invitations = [each for each in self.invitations if each["id"] != invitation_id]

    def furnish(self) -> str:
        """Returns the accounts that there are from the start."""
        return f"connect {MAILBOX} or {LINKEDIN}; UNIPILE_API_KEY is {self.key}"

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/api/v1/accounts/{account}", self._get_account),
            web.post("/api/v1/emails", self._post_email),
            web.get("/api/v1/emails", self._get_emails),
            web.post("/api/v1/chats", self._post_chat),
            web.get("/api/v1/chats/{chat}", self._get_chat),
            web.get("/api/v1/messages", self._get_messages),
            web.post("/api/v1/users/invite", self._post_invitation),
            web.get("/api/v1/users/invite/sent", self._get_invitations),
            web.get("/api/v1/users/{member}", self._get_user),
        )

    def account_of(self, request: web.Request) -> str:
        return request.match_info.get("account") or request.query.get("account_id", "")

    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        return Refusal(429, "too_many_requests").answer()

    def refused(self, request: web.Request) -> web.Response:
        return Refusal(422, "invalid_message").answer()

    def error(self) -> Mapping[str, Any]:
        return {"title": "Unexpected error", "detail": None, "type": "errors/unexpected_error", "status": 500}

    @operation("get_account")
    async def _get_account(self, request: web.Request) -> web.Response:
        try:
            self._check_key(request)
            account = request.match_info["account"]
            if account not in self.accounts:
                raise Refusal(404, "resource_not_found", "Account not found")
        except Refusal as refusal:
            return refusal.answer()
        source = {"id": f"{account}_MESSAGING", "status": self.accounts[account]}
        return web.json_response({"object": "Account", "id": account, "name": "Ada", "sources": [source]})

    @operation("send_email")
    async def _post_email(self, request: web.Request) -> web.Response:
        try:
            self._check_key(request)
            fields, files = await self._form(request)
            account = self._account(fields)
            to = self._recipients(fields)
            key = request.headers.get("Idempotency-Key", "")
            content = (sorted(fields.items()), files)
            if (known := self._by_key.get(key)) is not None:
                if known[0] != content:
                    self.problem(f"another mail under the key {key}")
                    raise Refusal(409, "resource_already_used")
                return web.json_response(known[1], status=201)
        except Refusal as refusal:
            return refusal.answer()
        email_id = self._next("mail")
        mail = {
            "object": "Email",
            "id": f"uni-{email_id}",
            "provider_id": email_id,
            "account_id": account,
            "date": self._instant(),
            "role": "sent",
            "subject": fields.get("subject"),
            "to_attendees": [{"identifier": each, "identifier_type": "EMAIL_ADDRESS"} for each in to],
        }
        self.emails.insert(0, mail)
        self.effect(
            account,
            id=email_id,
            channel="email",
            destination=to[0],
            text=fields.get("body"),
            title=fields.get("subject"),
            headers=json.loads(fields.get("custom_headers", "[]")),
            media=files,
        )
        answer = {"object": "EmailSent", "tracking_id": f"track-{email_id}", "provider_id": email_id}
        if key:
            self._by_key[key] = content, answer
        return web.json_response(answer, status=201)

    @operation("list_emails")
    async def _get_emails(self, request: web.Request) -> web.Response:
        to, role = request.query.get("to", "").lower(), request.query.get("role", "")
        found = [
            mail
            for mail in self.emails
            if role in {"", mail["role"]}
            and (not to or to in {each["identifier"].lower() for each in mail["to_attendees"]})
        ]
        return self._page(request, "EmailList", found, "date")

    @operation("start_chat")
    async def _post_chat(self, request: web.Request) -> web.Response:
        try:
            self._check_key(request)
            fields, files = await self._form(request)
            account = self._account(fields)
            member = fields.get("attendees_ids", "")
            public = self._member(account, member)
            inmail = fields.get("linkedin[inmail]") == "true"
            self._may_write(public, inmail=inmail)
        except Refusal as refusal:
            return refusal.answer()
        chat = self.chats.setdefault(
            f"chat-{account}-{public}",
            {
                "object": "Chat",
                "id": f"chat-{account}-{public}",
                "account_id": account,
                "attendee_provider_id": member,
                "type": 0,
            },
        )
        message_id = self._next("message")
        message = {
            "object": "Message",
            "id": message_id,
            "account_id": account,
            "chat_id": chat["id"],
            "text": fields.get("text"),
            "subject": fields.get("subject"),
            "timestamp": self._instant(),
            "is_sender": 1,
        }
        self.messages.insert(0, message)
        self.effect(
            account,
            id=message_id,
            channel="linkedin_inmail" if inmail else "linkedin_message",
            destination=public,
            text=fields.get("text"),
            title=fields.get("subject"),
            media=files,
        )
        answer = {"object": "ChatStarted", "chat_id": chat["id"], "message_id": message_id}
        return web.json_response(answer, status=201)

    @operation("get_chat")
    async def _get_chat(self, request: web.Request) -> web.Response:
        try:
            self._check_key(request)
            chat = self.chats.get(unquote(request.match_info["chat"]))
            if chat is None:
                raise Refusal(404, "resource_not_found")
        except Refusal as refusal:
            return refusal.answer()
        return web.json_response(chat)

    @operation("list_messages")
    async def _get_messages(self, request: web.Request) -> web.Response:
        return self._page(request, "MessageList", self.messages, "timestamp")

    @operation("invite")
    async def _post_invitation(self, request: web.Request) -> web.Response:
        try:
            self._check_key(request)
            fields = await request.json()
            account = self._account(fields)
            public = self._member(account, fields.get("provider_id", ""))
            note = fields.get("message", "")
            if len(note) > _LONGEST_NOTE:
                self.problem("a note of more than 300 characters")
                raise Refusal(400, "too_many_characters")
            self._may_invite(account, fields["provider_id"], public)
        except Refusal as refusal:
            return refusal.answer()
        invitation_id = self._next("invitation")
        invitation = {
            "object": "InvitationSent",
            "id": invitation_id,
            "account_id": account,
            "date": "Sent just now",
            "parsed_datetime": self._instant(),
            "invitation_text": note or None,
            "invited_user_id": fields["provider_id"],
            "invited_user_public_id": public,
        }
        self.invitations.insert(0, invitation)
        self.effect(account, id=invitation_id, channel="linkedin_connection", destination=public, text=note)
        return web.json_response({"object": "UserInvitationSent", "invitation_id": invitation_id})

    @operation("list_invitations")
    async def _get_invitations(self, request: web.Request) -> web.Response:
        return self._page(request, "InvitationList", self.invitations, "")

    @operation("get_user")
    async def _get_user(self, request: web.Request) -> web.Response:
        try:
            self._check_key(request)
            account = self._account(request.query)
            public = unquote(request.match_info["member"])
            if public not in self.members:
                raise Refusal(404, "resource_not_found", "The requested resource were not found.")
        except Refusal as refusal:
            return refusal.answer()
        body = {"object": "UserProfile", "provider": "LINKEDIN", "provider_id": member_id(account, public)}
        return web.json_response(body | {"public_identifier": public, "is_relationship": public in self.related})

    def _check_key(self, request: web.Request) -> None:
        if self.key in request.path_qs:
            self.problem("the key stands in the address")
        if request.headers.get("X-API-KEY") != self.key:
            raise Refusal(401, "missing_credentials")

    def _account(self, fields: Mapping[str, str]) -> str:
        account = fields.get("account_id", "")
        if account not in self.accounts:
            raise Refusal(404, "resource_not_found", "Account not found")
        if self.accounts[account] != "OK":
            raise Refusal(401, "disconnected_account")
        return account

    def _member(self, account: str, member: str) -> str:
        """Returns the public name of a member; only the id that the account itself sees will do."""
        public = next((each for each in self.members if member_id(account, each) == member), None)
        if public is None:
            if member in self.members:
                self.problem("a public name where only the id of a member does")
            raise Refusal(422, "invalid_recipient")
        return public

    def _recipients(self, fields: Mapping[str, str]) -> Sequence[str]:
        try:
            to = [each["identifier"] for each in json.loads(fields.get("to", ""))]
        except (ValueError, TypeError, KeyError):
            self.problem("`to` is no JSON list of attendees")
            raise Refusal(400, "invalid_parameters") from None
        if len(to) != 1:
            self.problem("a mail to more than one person")
        return to

    def _may_write(self, public: str, *, inmail: bool) -> None:
        if inmail:
            if not self.inmails_left:
                raise Refusal(422, "insufficient_credits")
            self.inmails_left -= 1
        elif public not in self.related:
            raise Refusal(422, "no_connection_with_recipient")

    def _may_invite(self, account: str, member: str, public: str) -> None:
        if public in self.related:
            raise Refusal(422, "already_connected")
        since = self.clock.now() - _RECENTLY
        for each in self.invitations:
            is_recent = datetime.fromisoformat(each["parsed_datetime"]) >= since
            if is_recent and (each["account_id"], each["invited_user_id"]) == (account, member):
                raise Refusal(422, "already_invited_recently")

    async def _form(self, request: web.Request) -> tuple[dict[str, str], list[str]]:
        """Returns the fields of a form, and digests of its files."""
        fields: dict[str, str] = {}
        files: list[str] = []
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            data = bytes(await part.read())
            if part.filename:
                files.append(sha256(data).hexdigest())
            else:
                fields[str(part.name)] = data.decode()
        return fields, files

    def _page(self, request: web.Request, kind: str, items: Sequence[dict[str, Any]], time: str) -> web.Response:
        """Returns a page of an account's items that are newer than `after`."""
        try:
            self._check_key(request)
            account = request.query.get("account_id", "")
            if account not in self.accounts:
                raise Refusal(404, "resource_not_found", "Account not found")
            start, limit = int(request.query.get("cursor", "0")), int(request.query.get("limit", "100"))
            if not 1 <= limit <= _MOST_PER_PAGE:
                raise Refusal(422, "limit_too_high")
        except Refusal as refusal:
            return refusal.answer()
        after = request.query.get("after", "")
        listed = [each for each in items if each["account_id"] == account and (not after or each[time] > after)]
        end = start + min(limit, self.per_page)
        cursor = str(end) if end < len(listed) else None
        return web.json_response({"object": kind, "items": listed[start:end], "cursor": cursor})

    def _next(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"

    def _instant(self) -> str:
        return self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
