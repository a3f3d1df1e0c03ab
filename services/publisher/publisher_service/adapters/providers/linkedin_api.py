"""The parts of LinkedIn's API that members and pages share: requests, names, and what answers mean."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, unquote

from channels.texts import with_link
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderDown
from publisher_service.adapters.providers.answers import object_in, object_of, text_in
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.linkedin_errors import duplicate_of, level_of, linkedin_error, until_reset
from publisher_service.adapters.providers.linkedin_text import little
from publisher_service.domain.outcome import Accepted, Ambiguous, AuthRefused, NotSent, Outcome, RateLimited, Rejected
from publisher_service.domain.preparation import Delayed, Preparing
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of, preparing_of
from servicekit.clock import Clock

SKEW: Final = timedelta(minutes=1)
"""The clock of LinkedIn may differ from our own by this much."""
_POST: Final = re.compile(r"urn:li:(?:share|ugcPost|activity):([0-9]{1,20})")
_COMMENT: Final = re.compile(r"urn:li:comment:\(urn:li:(?:share|ugcPost|activity):[0-9]{1,20},[0-9]{1,20}\)")
_LONGEST_TITLE: Final = 400


class LinkedInApi:
    """Requests of one version of the API, which lives for about a year."""

    def __init__(self, origin: HttpOrigin, limits: Limits, *, version: str, clock: Clock) -> None:
        self._calls = Calls("LinkedIn", origin, timeout=limits.request_timeout)
        self._version = version
        self.clock = clock

    async def read(self, path: str, token: str, headers: Mapping[str, str] | None = None) -> Answer | Unanswered:
        return await self._calls.read(path, {**self._headers(token), **(headers or {})})

    async def create(
        self, path: str, token: str, body: Mapping[str, Any], *, versioned: bool = True
    ) -> Answer | NotSent | Ambiguous:
        return await self._calls.post(path, self._headers(token, versioned=versioned), json.dumps(body).encode())

    def outcome(self, answer: Answer) -> Outcome:
        """Returns what an error means that answers a request to publish."""
        error = linkedin_error(answer)
        if error.kind is ErrorClass.QUOTA_EXHAUSTED:
            return RateLimited(message=error.message, retry_after=self._wait(error), level=level_of(error))
        if error.kind is ErrorClass.NOT_READY:
            # A definite refusal of this request: the media are not there yet.
            return NotSent(reason=error.reason, message=error.message)
        return outcome_of(error)

    def preparing(self, answer: Answer) -> Preparing:
        """Returns what an error means that answers a step of a preparation."""
        error = linkedin_error(answer)
        if error.kind is ErrorClass.QUOTA_EXHAUSTED:
            return Delayed(message=error.message, retry_after=self._wait(error))
        return preparing_of(error)

    async def readable(self, path: str, token: str, *, refused: str) -> dict[str, Any]:
        """Returns what is under the path. Raises CredentialsRefused with these words if the token may not read it."""
        answer = await self.read(path, token)
        if isinstance(answer, Unanswered):
            raise ProviderDown(answer.message)
        if answer.status == 200:
            return object_of(answer.body)
        error = linkedin_error(answer)
        if isinstance(outcome_of(error), AuthRefused | Rejected):
            raise CredentialsRefused(f"{refused}: {error.message}")
        raise ProviderDown(error.message)

    def _headers(self, token: str, *, versioned: bool = True) -> dict[str, str]:
        common = {"Authorization": f"Bearer {token}", "X-Restli-Protocol-Version": "2.0.0"}
        return common | ({"LinkedIn-Version": self._version} if versioned else {})

    def _wait(self, error: ProviderError) -> timedelta:
        return error.wait or until_reset(self.clock.now())


def path_of(urn: str) -> str:
    """Returns the URN as a segment of a path, or as a value of a query."""
    return quote(urn, safe="")


def post_body(post: Post, author: str, media: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the request that publishes the post; `media` is its content if it has media."""
    content = media or _article(post)
    return {
        "author": author,
        "commentary": little(text_of(post)),
        "visibility": "PUBLIC",
        "distribution": {"feedDistribution": "MAIN_FEED", "targetEntities": [], "thirdPartyDistributionChannels": []},
        **({"content": content} if content else {}),
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": False,
    }


def text_of(post: Post) -> str:
    """Returns the text as it is shown. A post has media or a preview of its link: beside media the link is text."""
    return with_link(post.text, post.link) if post.media else post.text


def _article(post: Post) -> dict[str, Any]:
    """Returns the preview of the link, if there is one. LinkedIn reads nothing from the page."""
    if not post.link:
        return {}
    return {"article": {"source": post.link, "title": (post.title or post.link)[:_LONGEST_TITLE]}}


def published(answer: Answer) -> Outcome:
    """Returns what the success of a request to publish means: only a header names the post."""
    urn = _named(answer)
    if not is_post(urn):
        return Ambiguous(reason="NO_NAME", message="LinkedIn has published the post, and does not name it")
    return Accepted(external_id=urn, external_url=url_of(urn))


def commented(answer: Answer, on: str) -> Outcome:
    """Returns what the success of a request to comment on a post means."""
    body, name = object_of(answer.body), _named(answer)
    urn = text_in(body, "commentUrn") or (f"urn:li:comment:({on},{name})" if name.isdecimal() else name)
    if not is_comment(urn):
        return Ambiguous(reason="NO_NAME", message="LinkedIn has published the comment, and does not name it")
    return Accepted(external_id=urn, external_url=url_of_comment(on, urn))


def comment_body(post: Post, author: str) -> dict[str, Any]:
    """Returns the request for a comment, whose text is plain."""
    return {"actor": author, "object": post.follows, "message": {"text": post.text}}


def refused_comment(api: LinkedInApi, answer: Answer) -> Outcome:
    """Returns what the refusal of a comment means: a token that may post may still not be allowed to comment."""
    error = linkedin_error(answer)
    if error.kind is ErrorClass.AUTH_SCOPE:
        return Rejected(reason="COMMENTS_NOT_ALLOWED", message=error.message)
    return api.outcome(answer)


def repeated(answer: Answer, error: ProviderError) -> Rejected:
    """Returns the refusal of a text that is out already; this request has published nothing."""
    first = duplicate_of(answer)
    named = f": {first}" if first and first not in error.message else ""
    return Rejected(reason="DUPLICATE_POST", message=f"{error.message}{named}")


def may_be_made_since(urn: str, since: datetime) -> bool:
    """Returns whether a post may have been made since then.

    The upper 41 bits of its number are the Unix time in milliseconds. That is not documented, so a number that says no
    time of the last years proves nothing.
    """
    match = _POST.fullmatch(urn)
    milliseconds = int(match[1]) >> 22 if match else 0
    if not 1_420_070_400_000 <= milliseconds < 1 << 42:  # 2015
        return True
    return datetime.fromtimestamp(milliseconds / 1000, UTC) >= since - SKEW


def is_post(urn: str) -> bool:
    return _POST.fullmatch(urn) is not None


def is_comment(urn: str) -> bool:
    return _COMMENT.fullmatch(urn) is not None


def url_of(urn: str) -> str:
    return f"https://www.linkedin.com/feed/update/{urn}/"


def url_of_comment(on: str, urn: str) -> str:
    return f"{url_of(on)}?commentUrn={quote(urn, safe='')}"


def next_page(body: Mapping[str, Any]) -> bool | None:
    """Returns whether a list goes on behind this page; None if the answer does not say."""
    links = object_in(body, "paging").get("links")
    if not isinstance(links, list):
        return None
    return any(isinstance(link, dict) and link.get("rel") == "next" for link in links)


def _named(answer: Answer) -> str:
    return unquote(answer.headers.get(b"x-restli-id", b"").decode("ascii", "replace"))
