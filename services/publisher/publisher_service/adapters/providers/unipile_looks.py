"""Looks for a message among those that Unipile lists of an account: only exactly one that fits is proof.

Absence is none. Unipile lists a message once it has read the mailbox, or LinkedIn, again, and nobody says how long that
takes at most; an invitation that was accepted or withdrawn is not listed either.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.answers import is_post_name, list_in, object_of, time_of
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.domain.outcome import AuthRefused, Finding, Found, NoProof
from publisher_service.domain.provider_error import ProviderError, outcome_of

# The clock of the network may differ from our own by this much.
_SKEW: Final = timedelta(minutes=1)
# An answer longer than 64 KiB is not read, and a message has one to two.
_PAGE: Final = 25
_MOST_PAGES: Final = 8
_MOST_CHATS: Final = 5

Item = Mapping[str, Any]


class UnipileLooks:
    def __init__(
        self, calls: Calls, headers: Mapping[str, str], *, classify: Callable[[Answer], ProviderError]
    ) -> None:
        """`classify` returns what an error means, without the key that its message may repeat."""
        self._calls = calls
        self._headers = headers
        self._classify = classify

    async def email(self, post: Post) -> Finding:
        """Looks for a sent e-mail to the recipient, with the subject, that is not older than the first request."""
        since = _since(post)
        if since is None or not post.title:
            return _unknown()
        query = {"role": "sent", "to": post.destination, "after": _instant(since), "meta_only": "true"}
        items = await self._all("/api/v1/emails", post, query)
        if not isinstance(items, Sequence):
            return items
        recent = [each for each in items if _is_since(each.get("date"), since)]
        if any(not _is_readable_mail(each) for each in recent):
            return NoProof(message="an e-mail is listed without its subject or recipients")
        same = [each for each in recent if _is_mail(each, post)]
        if any(each.get("role") != "sent" for each in same):
            return NoProof(message="an e-mail like this one is listed, but not as sent")
        return _found(same, "provider_id", time="date")

    async def message(self, post: Post, member: str) -> Finding:
        """Looks for a message of the account to the member, with the text, among all that it has sent since."""
        since = _since(post)
        if since is None or not post.text or not member:
            return _unknown()
        items = await self._all("/api/v1/messages", post, {"after": _instant(since)})
        if not isinstance(items, Sequence):
            return items
        sent = [each for each in items if each.get("is_sender") == 1 and _is_since(each.get("timestamp"), since)]
        same = [each for each in sent if _same(each.get("text"), post.text)]
        return await self._to_member(same, post, member)

    async def invitation(self, post: Post, member: str) -> Finding:
        """Looks for the invitation among those that are pending."""
        since = _since(post)
        if since is None or not member:
            return _unknown()
        items = await self._all("/api/v1/users/invite/sent", post, {})
        if not isinstance(items, Sequence):
            return items
        same = [
            each
            for each in items
            if each.get("invited_user_id") == member
            and _same(each.get("invitation_text") or "", post.text)
            # Computed from "sent 5 minutes ago", so never before the true time.
            and _is_since(each.get("parsed_datetime"), since)
        ]
        return _found(same, "id", time="")

    async def _to_member(self, same: Sequence[Item], post: Post, member: str) -> Finding:
        """Returns whether one of the messages with the text went to the member."""
        if len(same) > _MOST_CHATS:
            return NoProof(message=f"the account has sent this text {len(same)} times")
        hits: list[Item] = []
        for each in same:
            if not is_post_name(chat_id := each.get("chat_id")):
                return NoProof(message="a message with this text is in no chat")
            answer = await self._read(f"/api/v1/chats/{quote(chat_id, safe='')}")
            if not isinstance(answer, Mapping):
                return answer
            attendee = answer.get("attendee_provider_id")
            if answer.get("account_id") != post.external_account_id or not isinstance(attendee, str):
                return NoProof(message="nobody knows who got a message with this text")
            if attendee == member:
                hits.append(each)
        return _found(hits, "id", time="timestamp")

    async def _all(self, path: str, post: Post, query: Mapping[str, str]) -> Sequence[Item] | NoProof | AuthRefused:
        """Returns all items of a list, page after page."""
        items: list[Item] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            asked = {"account_id": post.external_account_id, "limit": str(_PAGE), **query}
            body = await self._read(f"{path}?{urlencode(asked | ({'cursor': cursor} if cursor else {}))}")
            if not isinstance(body, Mapping):
                return body
            page, cursor = list_in(body, "items"), body.get("cursor")
            if page is None or not all(isinstance(each, dict) for each in page) or not isinstance(cursor, str | None):
                return NoProof(message="the list of Unipile cannot be read")
            items.extend(page)
            if not cursor:
                return items
        return NoProof(message=f"the account has more than {_MOST_PAGES * _PAGE} messages since the first request")

    async def _read(self, path: str) -> Mapping[str, Any] | NoProof | AuthRefused:
        answer = await self._calls.read(path, self._headers)
        if isinstance(answer, Unanswered):
            return NoProof(message=answer.message)
        if answer.status != 200:
            outcome = outcome_of(self._classify(answer))
            if isinstance(outcome, AuthRefused):
                return outcome
            return NoProof(message=f"the look-up answered {answer.status}")
        return object_of(answer.body)


def _is_readable_mail(item: Item) -> bool:
    """Returns whether the item is more than the mere reference to a mail that the list may have."""
    return isinstance(item.get("subject", 0), str | None) and isinstance(item.get("to_attendees"), list)


def _is_mail(item: Item, post: Post) -> bool:
    recipients = set(_identifiers(item.get("to_attendees")))
    return _same(item.get("subject"), post.title) and post.destination.lower() in recipients


def _identifiers(attendees: object) -> Iterator[str]:
    for each in attendees if isinstance(attendees, list) else ():
        if isinstance(each, dict) and isinstance(identifier := each.get("identifier"), str):
            yield identifier.lower()


def _found(hits: Sequence[Item], name: str, *, time: str) -> Finding:
    """Returns the proof if there is exactly one hit, with a name."""
    if not hits:
        return NoProof(message="Unipile does not list it, and may list it later")
    if len(hits) != 1:
        return NoProof(message=f"{len(hits)} messages fit")
    (hit,) = hits
    external_id = next((hit[key] for key in (name, "id") if is_post_name(hit.get(key))), None)
    if external_id is None:
        return NoProof(message="the message has no name that can be kept")
    return Found(external_id=external_id, external_url="", publish_time=time_of(hit.get(time)) if time else None)


def _since(post: Post) -> datetime | None:
    return post.since - _SKEW if post.since is not None else None


def _is_since(time: object, since: datetime) -> bool:
    """Returns whether an item is not older. One without a time may be the one, too."""
    read = time_of(time)
    return read is None or read >= since


def _same(seen: object, wanted: str) -> bool:
    """Returns whether two texts are equal but for white space: networks trim lines, and mail folds subjects."""
    return isinstance(seen, str) and seen.split() == wanted.split()


def _instant(time: datetime) -> str:
    """Returns the one form that Unipile reads: milliseconds, in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def _unknown() -> NoProof:
    return NoProof(message="nothing is known by which the message could be recognized")
