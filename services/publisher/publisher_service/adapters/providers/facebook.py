"""Facebook pages. Photos and videos are uploaded before they can be seen, so publishing is one small request.

A post is looked for among the page's newest ones. Of a video there is better proof: it is uploaded as an unpublished
one, published by a change of its field `published`, and its state tells whether it is out. (An upload that publishes at
its end would put out a video that Meta has not processed, at a time that nobody knows; reels take 90 seconds at most.)
https://developers.facebook.com/docs/pages-api/posts, https://developers.facebook.com/docs/graph-api/reference/video
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from channels.validation import MediaKind
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.answers import list_in, object_in, object_of
from publisher_service.adapters.providers.credentials import OAuth, TokenSource
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.media_source import MediaFile, MediaSource, without_media
from publisher_service.adapters.providers.meta_errors import UNREADABLE, meta_error, of_comment, usage_quotas
from publisher_service.adapters.providers.meta_graph import (
    VERSION,
    Graph,
    handle_naming,
    made,
    not_made,
    proves_nothing,
    segment,
)
from publisher_service.adapters.providers.meta_login import MetaLogin
from publisher_service.adapters.providers.meta_posts import SKEW, IsOwn, recognized, sightings
from publisher_service.adapters.providers.meta_rules import FACEBOOK_RULES
from publisher_service.adapters.providers.meta_tokens import (
    DIALOG,
    PAGE_SCOPES,
    FacebookLoginOAuth,
    FacebookLoginTokens,
    as_page,
)
from publisher_service.adapters.providers.oauth_application import Application
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    Finding,
    Found,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Delayed, Preparing, Processing, Ready, Unfit, Void
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of, preparing_of

_NOTHING: Final = "text"
_LIFE: Final = timedelta(hours=23)
_MOST_PAGES: Final = 10
_ATTACHMENTS: Final = "attachments{target{id},subattachments.limit(20){target{id}}}"
_POST_FIELDS: Final = f"id,message,created_time,permalink_url,{_ATTACHMENTS}"
_COMMENT_FIELDS: Final = "id,message,created_time,permalink_url,from{id}"


class FacebookAdapter:
    name: Final = "facebook"
    rules: Final = FACEBOOK_RULES
    proof: Final = Proof.LOOKUP

    def __init__(
        self,
        origin: HttpOrigin,
        limits: Limits,
        *,
        media: MediaSource,
        version: str = VERSION,
        app: Application | None = None,
        dialog_url: str = DIALOG,
    ) -> None:
        """Takes our application at Meta; without one nobody can visit Facebook, and no token is refreshed."""
        self.limits: Final = replace(limits, handle_life=min(limits.handle_life, _LIFE))
        self._graph = Graph("Facebook", origin, limits, version=version)
        self._media = media
        self.token_source: TokenSource | None = None
        self.oauth: OAuth | None = None
        if app is not None:
            login = MetaLogin("Facebook", origin, limits, version=version, app=app)
            self.token_source = FacebookLoginTokens(login, limits, as_page)
            self.oauth = FacebookLoginOAuth(
                login, limits, as_page, app=app, version=version, scopes=PAGE_SCOPES, dialog_url=dialog_url
            )

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        await self._graph.check_access(external_account_id, credentials.access_token, "id,name")

    async def prepare(self, post: Post) -> Preparing:
        if post.follows or not post.media:
            return Ready(handle=_NOTHING)
        return await self._in_time(post, [])

    async def check(self, post: Post) -> Preparing:
        state = _state(post.handle)
        video = state.get("video")
        if isinstance(video, str):
            return await self._processed(post, video)
        return await self._in_time(post, _photos(state))

    async def send(self, post: Post) -> Outcome:
        state, token = _state(post.handle), post.access_token
        if post.follows:
            path, fields = f"{segment(post.follows)}/comments", {"message": post.text}
        elif isinstance(video := state.get("video"), str):
            return _published(await self._graph.post(segment(video), token, {"published": "true"}), video)
        elif post.media and len(_photos(state)) != len(post.media):
            return NotSent(reason="NOT_PREPARED", message="the media of the post are not uploaded")
        else:
            path, fields = f"{segment(post.external_account_id)}/feed", _feed(post, _photos(state))
        answer = await self._graph.post(path, token, fields)
        return _outcome(answer, is_comment=bool(post.follows)) if isinstance(answer, Answer) else answer

    async def look(self, post: Post) -> Finding:
        try:
            async with asyncio.timeout(self.limits.request_timeout.total_seconds()):
                return await self._look(post)
        except TimeoutError:
            return NoProof(message="Facebook gave no answer in time")

    async def _look(self, post: Post) -> Finding:
        state = _state(post.handle)
        if isinstance(video := state.get("video"), str) and not post.follows:
            return await self._look_at_video(post, video)
        photos = frozenset(_photos(state))
        if post.since is None or not (post.text or photos):
            return NoProof(message="nothing is known by which the post could be recognized")
        if post.follows:
            path, fields = f"{segment(post.follows)}/comments", _COMMENT_FIELDS
            query = {"filter": "stream", "order": "reverse_chronological", "limit": "25"}
        else:
            path, fields = f"{segment(post.external_account_id)}/published_posts", _POST_FIELDS
            # A page has to fit into an answer; a longer one is not read.
            query = {"limit": "10"}
        query |= {"fields": fields, "since": _unix(post.since - SKEW)}
        entries = await self._graph.listed(path, post.access_token, query, most_pages=_MOST_PAGES)
        if isinstance(entries, ProviderError):
            return proves_nothing(of_comment(entries) if post.follows else entries)
        is_own = written_by_page(post.external_account_id) if post.follows else None
        seen = sightings(entries, text="message", time="created_time", url="permalink_url", is_own=is_own)
        if seen is None:
            return NoProof(message="the list of posts cannot be read")
        return recognized(seen, text=post.text, since=post.since, media=frozenset() if post.follows else photos)

    async def _look_at_video(self, post: Post, video: str) -> Finding:
        seen = await self._graph.read(segment(video), post.access_token, {"fields": "published,status"})
        if isinstance(seen, ProviderError):
            return proves_nothing(seen)
        match seen.get("published"):
            case True:
                return Found(external_id=video, external_url=_video_url(video))
            case False:
                return Absent(handle_is_void=object_in(seen, "status").get("video_status") in ("error", "expired"))
            case _:
                return NoProof(message="Facebook does not say whether the video is published")

    async def _in_time(self, post: Post, photos: Sequence[str]) -> Preparing:
        """Takes the next step, which ends before its time limit does."""
        try:
            async with asyncio.timeout(self.limits.prepare_timeout.total_seconds()):
                return await self._upload_next(post, photos)
        except TimeoutError:
            return Delayed(message="an upload took too long")

    async def _upload_next(self, post: Post, photos: Sequence[str]) -> Preparing:
        """Uploads one photo, or the video; what was uploaded is in the handle before the next one begins."""
        if len(photos) >= len(post.media):
            return Ready(handle=handle_naming({"photos": photos}))
        media = post.media[len(photos)]
        try:
            async with self._media.open(post.organization_id, media) as file:
                kind = file.facts.kind
                if kind is MediaKind.DOCUMENT or (kind is MediaKind.VIDEO and len(post.media) > 1):
                    return Unfit(reason="MEDIA_MIX", message="a post has photos, or one video, and nothing else")
                uploaded = await self._upload(post, media, file)
        except (MediaRefused, MediaUnavailable) as error:
            return without_media(error)
        if isinstance(uploaded, ProviderError):
            return not_made(uploaded)
        if kind is MediaKind.VIDEO:
            return Processing(handle=handle_naming({"video": uploaded}))
        handle = handle_naming({"photos": [*photos, uploaded]})
        return Ready(handle=handle) if len(photos) + 1 == len(post.media) else Processing(handle=handle)

    async def _upload(self, post: Post, media: ContentMedia, file: MediaFile) -> str | ProviderError:
        if file.facts.kind is MediaKind.VIDEO:
            edge, fields = "videos", {"description": post.text}
        else:
            edge, fields = "photos", {"alt_text_custom": media.alt_text}
        fields = {"published": "false"} | {name: text for name, text in fields.items() if text}
        path = f"{segment(post.external_account_id)}/{edge}"
        return await self._graph.upload(path, post.access_token, fields, file, timeout=self.limits.prepare_timeout)

    async def _processed(self, post: Post, video: str) -> Preparing:
        seen = await self._graph.read(segment(video), post.access_token, {"fields": "published,status"})
        if isinstance(seen, ProviderError):
            return preparing_of(seen)
        match object_in(seen, "status").get("video_status"):
            case "ready":
                return Ready(handle=post.handle)
            case "processing" | "uploading" | "upload_complete":
                return Processing(handle=post.handle)
            case "error" | "expired" | "upload_failed" as status:
                return Void(reason="MEDIA_ERROR", message=f"Facebook has processed the video, and says: {status}")
            case _:
                return Delayed(message="Facebook does not say how far the video is")


def _feed(post: Post, photos: Sequence[str]) -> dict[str, str]:
    fields = {"message": post.text} if post.text else {}
    if photos:
        return fields | {"attached_media": json.dumps([{"media_fbid": each} for each in photos])}
    return fields | ({"link": post.link} if post.link else {})


def _outcome(answer: Answer, *, is_comment: bool) -> Outcome:
    """Returns what the answer to a post or comment means."""
    identifier = made(answer)
    if isinstance(identifier, str):
        url = f"https://www.facebook.com/{segment(identifier)}"
        return Accepted(external_id=identifier, external_url=url, quotas=usage_quotas(answer))
    return _refused(of_comment(identifier) if is_comment else identifier, answer)


def _published(answer: Answer | NotSent | Ambiguous, video: str) -> Outcome:
    if not isinstance(answer, Answer):
        return answer
    if answer.status != 200:
        return _refused(meta_error(answer), answer)
    if object_of(answer.body).get("success") is True:
        return Accepted(external_id=video, external_url=_video_url(video), quotas=usage_quotas(answer))
    return Ambiguous(reason=UNREADABLE, message="Facebook may have published the video, but does not say so")


def _refused(error: ProviderError, answer: Answer) -> Outcome:
    if error.kind is ErrorClass.CHECK_THEN_FAIL:
        # Untrue of reads alone: this request has found no page, video or post.
        return Rejected(reason=error.reason, message=error.message)
    outcome = outcome_of(error)
    return replace(outcome, quotas=usage_quotas(answer)) if isinstance(outcome, RateLimited) else outcome


def written_by_page(page: str) -> IsOwn:
    """Returns what tells the comments of a page from those of others; Facebook does not always name their authors."""

    def is_own(comment: Mapping[str, Any]) -> bool | None:
        author = object_in(comment, "from").get("id")
        return author == page if isinstance(author, str) else None

    return is_own


def _state(handle: str) -> Mapping[str, Any]:
    return object_of(handle.encode())


def _photos(state: Mapping[str, Any]) -> Sequence[str]:
    return [each for each in list_in(state, "photos") or () if isinstance(each, str)]


def _video_url(video: str) -> str:
    return f"https://www.facebook.com/watch/?v={segment(video)}"


def _unix(time: datetime) -> str:
    return str(int(time.timestamp()))
