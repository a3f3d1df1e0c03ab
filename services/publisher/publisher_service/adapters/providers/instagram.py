"""Instagram: a post is prepared as a container, whose state tells whether it is out.

The container is the proof. Its post has another id, which is read from the account's newest posts if exactly one has
this text. Otherwise the post is known by the id of its container, and has no address: any other post may be the newest
one. Comments need the post's own id; one below a post that is known by its container is refused.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.answers import object_in, text_in
from publisher_service.adapters.providers.credentials import OAuth, TokenSource
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.instagram_containers import STORY, Containers, container_of
from publisher_service.adapters.providers.instagram_sign_in import InstagramSignIn
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.meta_errors import TOKENS, of_comment, usage_quotas
from publisher_service.adapters.providers.meta_graph import VERSION, Graph, made, proves_nothing, segment
from publisher_service.adapters.providers.meta_posts import SKEW, IsOwn, recognized, sightings
from publisher_service.adapters.providers.meta_rules import INSTAGRAM_RULES
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    Finding,
    Found,
    Level,
    NoProof,
    NotSent,
    Outcome,
    Quota,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Delayed, Preparing, Ready
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of
from servicekit.clock import Clock

_NOTHING: Final = "text"
_LIFE: Final = timedelta(hours=23)
_WINDOW: Final = timedelta(hours=24)
# The answer to a post that may have gone out all the same; if it has not, the account is held back.
_RESTRICTED: Final = "META_4_2207051"
_MEDIA_FIELDS: Final = "id,caption,timestamp,permalink,media_product_type"
# Instagram names the `user` of our own comments alone; everybody's `from` has an id that only this account sees.
_COMMENT_FIELDS: Final = "id,text,timestamp,user,from{id}"


class InstagramAdapter:
    """Publishes for accounts of Facebook Login (graph.facebook.com) and of Instagram Login (graph.instagram.com)."""

    name: Final = "instagram"
    rules: Final = INSTAGRAM_RULES
    proof: Final = Proof.CHECKABLE

    def __init__(
        self,
        origin: HttpOrigin,
        limits: Limits,
        *,
        media: MediaSource,
        clock: Clock,
        version: str = VERSION,
        sign_in: InstagramSignIn | None = None,
    ) -> None:
        # A container lives for 24 hours.
        self.limits: Final = replace(limits, handle_life=min(limits.handle_life, _LIFE))
        self._graph = Graph("Instagram", origin, limits, version=version)
        self._containers = Containers(self._graph, media)
        self._clock = clock
        chosen = sign_in or InstagramSignIn()
        self.token_source: TokenSource | None = chosen.token_source(origin, limits, version)
        self.oauth: OAuth | None = chosen.oauth(origin, limits, version)

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        await self._graph.check_access(external_account_id, credentials.access_token, "id,username")

    async def prepare(self, post: Post) -> Preparing:
        return Ready(handle=_NOTHING) if post.follows else await self._in_time(replace(post, handle=""))

    async def check(self, post: Post) -> Preparing:
        return await self._in_time(post)

    async def send(self, post: Post) -> Outcome:
        """Makes one request. After an answer that is no success, the state of the container says what it did."""
        if post.follows:
            return await self._comment(post)
        state = container_of(post.handle)
        if not state.container:
            return NotSent(reason="NOT_PREPARED", message="the post has no container")
        since = post.since or self._clock.now()
        ends = asyncio.get_running_loop().time() + self.limits.request_timeout.total_seconds()
        path = f"{segment(post.external_account_id)}/media_publish"
        answer = await self._graph.post(path, post.access_token, {"creation_id": state.container})
        if not isinstance(answer, Answer):
            return answer
        media = made(answer)
        if isinstance(media, str):
            url = await self._permalink(media, post.access_token, ends)
            return Accepted(external_id=media, external_url=url, quotas=(*usage_quotas(answer), *_quota(state.left)))
        if media.kind in TOKENS:
            # It was refused at the door, and so would be the question for the container.
            return _refused(media, answer)
        try:
            async with asyncio.timeout_at(ends):
                return await self._as_the_container_says(post, state.container, media, answer, since)
        except TimeoutError:
            return _unknown(media, answer)

    async def look(self, post: Post) -> Finding:
        try:
            async with asyncio.timeout(self.limits.request_timeout.total_seconds()):
                return await (self._look_at_comments(post) if post.follows else self._look_at_container(post))
        except TimeoutError:
            return NoProof(message="Instagram gave no answer in time")

    async def _in_time(self, post: Post) -> Preparing:
        try:
            async with asyncio.timeout(self.limits.prepare_timeout.total_seconds()):
                return await (self._containers.go_on(post) if post.handle else self._containers.begin(post))
        except TimeoutError:
            return Delayed(message="a step of the preparation took too long")

    async def _as_the_container_says(
        self, post: Post, container: str, error: ProviderError, answer: Answer, since: datetime
    ) -> Outcome:
        """Returns what an error means, whose container is published all the same, or is as it was."""
        seen = await self._containers.status(container, post.access_token)
        match seen.get("status_code") if not isinstance(seen, ProviderError) else None:
            case "PUBLISHED" if (found := await self._media_of(post, container, since)) is not None:
                return Accepted(
                    external_id=found.external_id,
                    external_url=found.external_url,
                    publish_time=found.publish_time,
                    is_by_text=True,
                    own_id=container,
                )
            case "FINISHED" if error.reason == _RESTRICTED:
                return outcome_of(replace(error, kind=ErrorClass.BLOCKED_POLICY))
            case "FINISHED":
                return _refused(error, answer)
            case _:
                return _unknown(error, answer)

    async def _look_at_container(self, post: Post) -> Finding:
        container = container_of(post.handle).container
        if not container:
            return NoProof(message="nobody knows which container was published")
        seen = await self._containers.status(container, post.access_token)
        if isinstance(seen, ProviderError):
            return proves_nothing(seen)
        match seen.get("status_code"):
            case "PUBLISHED":
                found = await self._media_of(post, container, post.since) if post.since is not None else None
                return found or Found(external_id=container, external_url="")
            case "FINISHED":
                return Absent()
            case "ERROR" | "EXPIRED":
                return Absent(handle_is_void=True)
            case _:
                return NoProof(message="Instagram does not say whether the container is published")

    async def _media_of(self, post: Post, container: str, since: datetime) -> Found | None:
        """Returns the only post with the text of a published container. Stories have no text."""
        if post.channel == STORY or not post.text:
            return None
        query = {"fields": _MEDIA_FIELDS, "limit": "25", "since": str(int((since - SKEW).timestamp()))}
        path = f"{segment(post.external_account_id)}/media"
        entries = await self._graph.listed(path, post.access_token, query, most_pages=4)
        if isinstance(entries, ProviderError):
            return None
        feed = [each for each in entries if isinstance(each, dict) and each.get("media_product_type") != "STORY"]
        seen = sightings(feed, text="caption", time="timestamp", url="permalink")
        found = recognized(seen, text=post.text, since=since) if seen is not None else None
        return replace(found, own_id=container) if isinstance(found, Found) else None

    async def _permalink(self, media: str, token: str, ends: float) -> str:
        """Reads the address of a post that is out. It is no part of the proof: without it, there is none to show."""
        try:
            async with asyncio.timeout_at(ends):
                seen = await self._graph.read(segment(media), token, {"fields": "permalink"})
        except TimeoutError:
            return ""
        return "" if isinstance(seen, ProviderError) else text_in(seen, "permalink")

    async def _comment(self, post: Post) -> Outcome:
        answer = await self._graph.post(f"{segment(post.follows)}/comments", post.access_token, {"message": post.text})
        if not isinstance(answer, Answer):
            return answer
        comment = made(answer)
        if isinstance(comment, str):
            return Accepted(external_id=comment, external_url="", quotas=usage_quotas(answer))
        if comment.kind is ErrorClass.CHECK_THEN_FAIL:
            # Untrue of reads alone: there is no such post.
            return Rejected(reason=comment.reason, message=comment.message)
        return _refused(of_comment(comment), answer)

    async def _look_at_comments(self, post: Post) -> Finding:
        if not post.text or post.since is None:
            return NoProof(message="nothing is known by which the comment could be recognized")
        query = {"fields": _COMMENT_FIELDS, "limit": "50"}
        path = f"{segment(post.follows)}/comments"
        entries = await self._graph.listed(path, post.access_token, query, most_pages=10)
        if isinstance(entries, ProviderError):
            return proves_nothing(of_comment(entries))
        is_own = written_by_account(post.external_account_id)
        seen = sightings(entries, text="text", time="timestamp", url="permalink", is_own=is_own)
        if seen is None:
            return NoProof(message="the list of comments cannot be read")
        return recognized(seen, text=post.text, since=post.since)


def written_by_account(account: str) -> IsOwn:
    """Returns what tells the comments of an account from those that others may have written."""

    def is_own(comment: Mapping[str, Any]) -> bool | None:
        names = (comment.get("user"), object_in(comment, "user").get("id"), object_in(comment, "from").get("id"))
        # Another name may be that of the account in another scope.
        return True if account in names else None

    return is_own


def _refused(error: ProviderError, answer: Answer) -> Outcome:
    outcome = outcome_of(error)
    if not isinstance(outcome, RateLimited):
        return outcome
    # Posts and stories count together.
    level = Level.ACCOUNT if outcome.level is Level.CHANNEL else outcome.level
    return replace(outcome, level=level, quotas=usage_quotas(answer))


def _unknown(error: ProviderError, answer: Answer) -> Ambiguous:
    """Returns the outcome while the container cannot be read; a limit that the error speaks of holds all the same."""
    refused = _refused(error, answer)
    if not isinstance(refused, RateLimited):
        return Ambiguous(reason=error.reason, message=error.message)
    limit = Quota(level=refused.level, remaining=0, reset_after=refused.retry_after)
    return Ambiguous(reason=error.reason, message=error.message, quotas=(limit, *refused.quotas))


def _quota(left: int | None) -> tuple[Quota, ...]:
    """Returns the quota after one more post."""
    if left is None:
        return ()
    reset_after = _WINDOW if left > 1 else timedelta(hours=1)
    return (Quota(level=Level.ACCOUNT, remaining=max(0, left - 1), reset_after=reset_after),)
