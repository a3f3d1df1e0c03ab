"""LinkedIn, for pages of organizations: what a page has posted is listed, and a post recognized by its text."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from channels.rules import ChannelRules
from channels.validation import MediaKind
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof
from publisher_service.adapters.providers.answers import list_in, object_of
from publisher_service.adapters.providers.calls import Unanswered
from publisher_service.adapters.providers.credentials import OAuth, TokenSource
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.linkedin_api import (
    SKEW,
    LinkedInApi,
    comment_body,
    commented,
    next_page,
    path_of,
    post_body,
    published,
    refused_comment,
    repeated,
)
from publisher_service.adapters.providers.linkedin_errors import duplicate_of, linkedin_error
from publisher_service.adapters.providers.linkedin_lists import Judge, comment_of, is_recognizable, post_of, verdict
from publisher_service.adapters.providers.linkedin_media import NOT_PREPARED, Connect, LinkedInMedia, media_content
from publisher_service.adapters.providers.linkedin_rules import LINKEDIN_RULES
from publisher_service.adapters.providers.linkedin_tokens import PAGE_SCOPES, LinkedInOAuth, LinkedInTokens, pages_of
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.oauth_application import Application
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Accepted, AuthRefused, Finding, Found, NoProof, Outcome, Rejected
from publisher_service.domain.preparation import Preparing, Unfit
from publisher_service.domain.provider_error import ErrorClass
from servicekit.clock import Clock

_PAGE: Final = re.compile(r"(?:urn:li:organization:)?([0-9]{1,20})")
# Of an answer 64 KiB are read, and a post may be 12 KB of them.
_COUNT: Final = 10
_MOST_PAGES: Final = 4
_FINDER: Final = {"X-RestLi-Method": "FINDER"}
_NO_PAGE: Final = "the account is no organization of LinkedIn"


class LinkedInPageAdapter:
    """Posts of a page: the scopes are `w_organization_social r_organization_social`, with a role on the page.

    Comments also need `w_organization_social_feed r_organization_social_feed`.
    """

    name: Final = "linkedin-page"
    rules: Final[Mapping[str, ChannelRules]] = {"linkedin_page": LINKEDIN_RULES}
    proof: Final = Proof.LOOKUP

    def __init__(
        self,
        origin: HttpOrigin,
        limits: Limits,
        *,
        version: str,
        media: MediaSource,
        clock: Clock,
        connect: Connect | None = None,
        app: Application | None = None,
        sign_in: HttpOrigin | None = None,
    ) -> None:
        """Takes our application and the server of its tokens, www.linkedin.com; without both nobody can visit."""
        self.limits: Final = replace(
            limits, prepare_timeout=3 * limits.prepare_timeout, senders=min(limits.senders, 16)
        )
        self._api = LinkedInApi(origin, limits, version=version, clock=clock)
        self._media = LinkedInMedia(self._api, origin, self.limits, media=media, connect=connect)
        self.token_source: TokenSource | None = None
        self.oauth: OAuth | None = None
        if app is not None and sign_in is not None:
            self.token_source = LinkedInTokens(sign_in, limits, app)
            self.oauth = LinkedInOAuth(self._api, sign_in, limits, app=app, scopes=PAGE_SCOPES, accounts=pages_of)

    async def close(self) -> None:
        """Closes the connections for uploads."""
        await self._media.close()

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Reads the posts of the page, as looks do: that needs a role on it, and the scope `r_organization_social`."""
        if not (page := _page(external_account_id)):
            raise CredentialsRefused(_NO_PAGE)
        await self._api.readable(
            _posts_of(page, 0, count=1),
            credentials.access_token,
            refused="the token may not read the posts of this page (r_organization_social)",
        )

    async def prepare(self, post: Post) -> Preparing:
        if not (page := _page(post.external_account_id)):
            return Unfit(reason="ACCOUNT_UNREADABLE", message=_NO_PAGE)
        return await self._media.begin(post, page)

    async def check(self, post: Post) -> Preparing:
        if not (page := _page(post.external_account_id)):
            return Unfit(reason="ACCOUNT_UNREADABLE", message=_NO_PAGE)
        return await self._media.go_on(post, page, readable=frozenset(MediaKind))

    async def send(self, post: Post) -> Outcome:
        if not (page := _page(post.external_account_id)):
            return Rejected(reason="ACCOUNT_UNREADABLE", message=_NO_PAGE)
        token = post.access_token
        if post.follows:
            path, body = _comments_of(post.follows), comment_body(post, page)
        else:
            if post.media and not media_content(post):
                return NOT_PREPARED
            path, body = "/rest/posts", post_body(post, page, media_content(post))
        answer = await self._api.create(path, token, body)
        if not isinstance(answer, Answer):
            return answer
        if answer.status == 201:
            return commented(answer, post.follows) if post.follows else published(answer)
        if post.follows:
            return refused_comment(self._api, answer)
        error = linkedin_error(answer)
        if error.kind is not ErrorClass.DUPLICATE_PROOF:
            return self._api.outcome(answer)
        return await self._first_of(post, page, duplicate_of(answer)) or repeated(answer, error)

    async def look(self, post: Post) -> Finding:
        if post.since is None or not is_recognizable(post):
            return NoProof(message="nothing is known by which the post could be recognized")
        if not (page := _page(post.external_account_id)):
            return NoProof(message=_NO_PAGE)
        if post.follows:
            return await self._search(post, comment_of(post, page), lambda at: f"{_comments_of(post.follows)}?{at}")
        return await self._search(post, post_of(post, page), lambda at: f"{_posts_of(page)}&{at}")

    async def _search(self, post: Post, judge: Judge, path: Callable[[str], str]) -> Finding:
        """Goes through a list until it is known to hold nothing more of the run. Only exactly one hit is proof."""
        assert post.since is not None
        hits: list[Found | None] = []
        for number in range(_MOST_PAGES):
            at = f"start={number * _COUNT}&count={_COUNT}"
            answer = await self._api.read(path(at), post.access_token, _FINDER if not post.follows else None)
            page = _page_of(answer)
            if not isinstance(page, dict):
                return page
            elements, goes_on = list_in(page, "elements"), next_page(page)
            seen = [judge(each) for each in elements or ()]
            if elements is None or goes_on is None or None in seen:
                return NoProof(message="the list of LinkedIn cannot be read")
            hits += [each.hit for each in seen if each is not None and each.is_hit]
            # The list is sorted by the last change, but for posts that were pinned: the end of a page counts.
            if not goes_on or (seen and seen[-1] is not None and seen[-1].changed < post.since - SKEW):
                return verdict(hits)
        return NoProof(message="too many posts were made or changed since")

    async def _first_of(self, post: Post, page: str, urn: str) -> Accepted | None:
        """Returns the post that the refusal of a duplicate names, if it can be read and is this run's."""
        if not urn or post.since is None:
            return None
        answer = await self._api.read(f"/rest/posts/{path_of(urn)}", post.access_token)
        if not isinstance(answer, Answer) or answer.status != 200:
            return None
        seen = post_of(post, page)(object_of(answer.body))
        if seen is None or seen.hit is None:
            return None
        return Accepted(external_id=seen.hit.external_id, external_url=seen.hit.external_url, is_by_text=True)


def _page_of(answer: Answer | Unanswered) -> dict[str, Any] | AuthRefused | NoProof:
    if isinstance(answer, Unanswered):
        return NoProof(message=answer.message)
    if answer.status == 200:
        return object_of(answer.body)
    error = linkedin_error(answer)
    if error.kind in (ErrorClass.AUTH_EXPIRED, ErrorClass.AUTH_REVOKED):
        return AuthRefused(message=error.message)
    return NoProof(message=f"the look-up answered {answer.status}: {error.message}")


def _posts_of(page: str, start: int | None = None, *, count: int = _COUNT) -> str:
    at = "" if start is None else f"&start={start}&count={count}"
    return f"/rest/posts?q=author&author={path_of(page)}&sortBy=LAST_MODIFIED{at}"


def _comments_of(urn: str) -> str:
    return f"/rest/socialActions/{path_of(urn)}/comments"


def _page(external_account_id: str) -> str:
    match = _PAGE.fullmatch(external_account_id)
    return f"urn:li:organization:{match[1]}" if match else ""
