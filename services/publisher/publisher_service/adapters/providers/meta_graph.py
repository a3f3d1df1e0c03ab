"""Calls of Meta's Graph API: the token is in a header, a body is a form, and each answer is read with care."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, ProviderDown
from publisher_service.adapters.providers.answers import is_post_name, list_in, object_in, object_of, redacted_error
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.media_source import MediaFile
from publisher_service.adapters.providers.meta_errors import CREDENTIALS, NO_ANSWER, TOO_LONG, UNREADABLE, meta_error
from publisher_service.adapters.providers.multipart import Form, FormFile
from publisher_service.domain.outcome import Ambiguous, AuthRefused, NoProof, NotSent
from publisher_service.domain.preparation import Preparing, Void
from publisher_service.domain.provider_error import ErrorClass, ProviderError, preparing_of

VERSION: Final = "v25.0"
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Graph:
    """`name` is for messages; every path begins with the id of an object."""

    def __init__(self, name: str, origin: HttpOrigin, limits: Limits, *, version: str) -> None:
        self._name = name
        self._origin = origin
        self._calls = Calls(name, origin, timeout=limits.request_timeout)
        self._root = f"/{version}"

    async def read(self, path: str, token: str, query: Mapping[str, str]) -> Mapping[str, Any] | ProviderError:
        """Reads an object. Meta sometimes says of one that is there that it is not: then it is read once more."""
        url = f"{self._root}/{path}?{urlencode(query)}"
        seen = await self._read(url, token)
        if isinstance(seen, ProviderError) and seen.kind is ErrorClass.CHECK_THEN_FAIL:
            seen = await self._read(url, token)
        return seen

    async def listed(
        self, path: str, token: str, query: Mapping[str, str], *, most_pages: int
    ) -> Sequence[object] | ProviderError:
        """Reads a whole list, page by page. One that is longer, or that cannot be read to its end, is an error."""
        entries: list[object] = []
        after: dict[str, str] = {}
        for _ in range(most_pages):
            page = await self.read(path, token, {**query, **after})
            if isinstance(page, ProviderError):
                return page
            data, paging = list_in(page, "data"), object_in(page, "paging")
            if data is None:
                return unreadable(self._name)
            entries += data
            # The address of the next page is not followed: it has the token in it.
            if "next" not in paging:
                return entries
            cursor = object_in(paging, "cursors").get("after")
            if not isinstance(cursor, str):
                return unreadable(self._name)
            after = {"after": cursor}
        message = f"the list of {self._name} has more than {most_pages} pages"
        return ProviderError(kind=ErrorClass.RETRY_LATER, reason=TOO_LONG, message=message)

    async def post(self, path: str, token: str, fields: Mapping[str, str]) -> Answer | NotSent | Ambiguous:
        """Makes one request and never repeats it."""
        body = urlencode(fields).encode()
        return await self._calls.post(f"{self._root}/{path}", _bearer(token), body, content=_FORM)

    async def make(self, path: str, token: str, fields: Mapping[str, str]) -> str | ProviderError:
        """Makes an object that nobody can see; returns its id."""
        answer = await self.post(path, token, fields)
        return made(answer) if isinstance(answer, Answer) else no_answer(answer.message)

    async def upload(
        self, path: str, token: str, fields: Mapping[str, str], file: MediaFile, *, timeout: timedelta
    ) -> str | ProviderError:
        """Makes an object of the bytes of media, which are sent as the file `source`; returns its id."""
        form = Form(list(fields.items()), [FormFile(name="source", file=file)])
        headers = {**_bearer(token), "Content-Type": form.content_type}
        url = f"{self._root}/{path}"
        answer = await self._calls.post_pieces(url, headers, form.pieces(), size=form.size, timeout=timeout)
        return made(answer) if isinstance(answer, Answer) else no_answer(answer.message)

    async def check_access(self, account: str, token: str, fields: str) -> None:
        """Checks that the token may read the account. Raises CredentialsRefused or ProviderDown."""
        seen = await self.read(segment(account), token, {"fields": fields})
        if not isinstance(seen, ProviderError):
            return
        if seen.kind in CREDENTIALS or seen.kind in (ErrorClass.PERMANENT, ErrorClass.CHECK_THEN_FAIL):
            raise CredentialsRefused(seen.message)
        raise ProviderDown(seen.message)

    async def _read(self, url: str, token: str) -> Mapping[str, Any] | ProviderError:
        answer = await self._calls.read(url, _bearer(token))
        if isinstance(answer, Unanswered):
            return no_answer(answer.message)
        if answer.status != 200:
            return redacted_error(answer, meta_error, (token,))
        body = object_of(answer.body)
        return body if body and "error" not in body else unreadable(self._name)


def segment(identifier: str) -> str:
    """Returns an id as one segment of a path."""
    return quote(identifier, safe="")


def made(answer: Answer) -> str | ProviderError:
    """Returns the id of what an answer says was made."""
    if answer.status != 200:
        return meta_error(answer)
    body = object_of(answer.body)
    identifier = body.get("id")
    return identifier if is_post_name(identifier) and "error" not in body else unreadable("Meta")


def not_made(error: ProviderError) -> Preparing:
    """Returns what an error means that answers a request to make something that nobody sees."""
    if error.kind is ErrorClass.CHECK_THEN_FAIL:
        # Untrue of reads only, as far as is known. A preparation that is void a third time is given up.
        return Void(reason=error.reason, message=error.message)
    return preparing_of(error)


def proves_nothing(error: ProviderError) -> AuthRefused | NoProof:
    """Returns what a failed read means for a look."""
    if error.kind in CREDENTIALS:
        return AuthRefused(message=error.message)
    return NoProof(message=f"the look-up failed: {error.message}")


def no_answer(message: str) -> ProviderError:
    return ProviderError(kind=ErrorClass.RETRY_LATER, reason=NO_ANSWER, message=message)


def unreadable(name: str) -> ProviderError:
    message = f"{name} gave an answer that cannot be read"
    return ProviderError(kind=ErrorClass.UNKNOWN_OUTCOME, reason=UNREADABLE, message=message)


def handle_naming(parts: Mapping[str, object]) -> str:
    return json.dumps(parts, separators=(",", ":"))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
