"""Posts to a URL that the tenant names, signed as Standard Webhooks says: a receiver ignores a repeat of an id."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

from publisher_service.adapters.outside.http_calls import call
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.refusals import AddressRefused, AnswerLost, Unreachable
from publisher_service.adapters.outside.urls import OutsideUrl
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof, ProviderDown
from publisher_service.adapters.providers.answers import is_post_name, object_of, retry_after, text_in
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.adapters.providers.settings_of_accounts import known_settings
from publisher_service.adapters.providers.texts import storable
from publisher_service.adapters.providers.webhook_rules import WEBHOOK_RULES
from publisher_service.adapters.standard_webhooks import InvalidSecret, require_secret, signed
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    NotSent,
    Outcome,
    Repeatable,
)
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of
from servicekit.clock import Clock
from servicekit.run.settings import Secret

_LONGEST_QUOTE: Final = 300
# Receivers are asked to remember ids for as long as they are retried; a day is what the usual ones do.
_REMEMBERED: Final = timedelta(hours=24)
_CLASSES: Final[Mapping[int, ErrorClass]] = {
    HTTPStatus.UNAUTHORIZED: ErrorClass.AUTH_REVOKED,
    HTTPStatus.NOT_FOUND: ErrorClass.RETRY_LATER,
    HTTPStatus.REQUEST_TIMEOUT: ErrorClass.UNKNOWN_OUTCOME,
    # A repeat that meets the first request, which is still being worked at.
    HTTPStatus.CONFLICT: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    HTTPStatus.GONE: ErrorClass.TARGET_GONE,
    HTTPStatus.TOO_EARLY: ErrorClass.RETRY_LATER,
    HTTPStatus.TOO_MANY_REQUESTS: ErrorClass.RATE_USER,
    HTTPStatus.BAD_GATEWAY: ErrorClass.RATE_USER,
    HTTPStatus.GATEWAY_TIMEOUT: ErrorClass.RATE_USER,
}
_CLASSES_BY_HUNDRED: Final = {
    2: ErrorClass.OK,
    3: ErrorClass.PERMANENT,
    4: ErrorClass.PERMANENT,
    5: ErrorClass.RETRY_LATER,
}
# What a form answers once it has done its work.
_AFTER_WORK: Final = frozenset({HTTPStatus.FOUND, HTTPStatus.SEE_OTHER})


class WebhookAdapter:
    name: Final = "webhook"
    rules: Final = WEBHOOK_RULES
    proof: Final = Proof.KEYED

    def __init__(self, outside: Outside, limits: Limits, *, clock: Clock) -> None:
        # Standard Webhooks asks for 15 to 30 seconds.
        self.limits: Final = replace(limits, request_timeout=2 * limits.request_timeout, repeat_window=_REMEMBERED)
        self._outside = outside
        self._clock = clock

    def check_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the settings, normalised. Raises InvalidField."""
        known_settings(settings, {"url"})
        try:
            return {"url": self._outside.read_url(settings.get("url", "")).text}
        except AddressRefused as refused:
            raise refused.as_fault("settings.url") from None

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Sends a signed `{"type": "ping"}`, which must be answered by 2xx: so the URL works and the secret is shared.

        Without settings only the form of the secret is checked. Raises CredentialsRefused or ProviderDown.
        """
        try:
            require_secret(Secret(credentials.access_token))
            if not settings.get("url"):
                return
            url = self._outside.read_url(settings["url"])
            ping_id = f"ping-{int(self._clock.now().timestamp() * 1000)}"
            error = classify_webhook(
                await self._post(organization_id, url, credentials.access_token, ping_id, _encoded({"type": "ping"}))
            )
        except InvalidSecret as error_in_form:
            raise CredentialsRefused(f"the secret {error_in_form}") from None
        except AddressRefused as refused:
            raise CredentialsRefused(refused.message) from None
        except (Unreachable, AnswerLost) as lost:
            raise ProviderDown(lost.message) from None
        if error.kind in {ErrorClass.RATE_USER, ErrorClass.UNKNOWN_OUTCOME} or error.reason.startswith("HTTP_5"):
            raise ProviderDown(error.message)
        if error.kind is not ErrorClass.OK:
            raise CredentialsRefused(error.message)

    async def send(self, post: Post) -> Outcome:
        try:
            url = self._outside.read_url(post.settings.get("url", ""))
            answer = await self._post(
                post.organization_id, url, post.access_token, post.idempotency_key, _encoded(body_of(post))
            )
        except InvalidSecret:
            return AuthRefused(message="the secret of the webhook has the wrong form")
        except (AddressRefused, Unreachable) as refused:
            return NotSent(reason=str(refused.reason), message=refused.message)
        except AnswerLost as lost:
            return Ambiguous(reason=lost.reason, message=lost.message)
        return _outcome(post, answer)

    async def look(self, post: Post) -> Finding:
        return Repeatable(message=f"the receiver ignores a repeat of the message {post.idempotency_key}")

    async def _post(self, organization_id: str, url: OutsideUrl, secret: str, message_id: str, body: bytes) -> Answer:
        """Makes one signed request. Raises InvalidSecret, AddressRefused, Unreachable or AnswerLost."""
        headers = signed(message_id, body, [Secret(secret)], at=self._clock.now())
        answer = await call(
            self._outside,
            organization_id,
            url,
            method="POST",
            headers={**headers, "Content-Type": "application/json"},
            body=body,
            timeout=self.limits.request_timeout,
        )
        return Answer(answer.status, answer.headers, answer.body)


def body_of(post: Post) -> dict[str, Any]:
    """Returns the post as the receiver gets it, in every attempt the same: docs/webhooks.md describes it."""
    return {
        "type": "post",
        "id": post.idempotency_key,
        "organization_id": post.organization_id,
        "channel": post.channel,
        "destination": post.destination,
        "schedule_time": post.schedule_time.isoformat() if post.schedule_time else None,
        "title": post.title,
        "text": post.text,
        "link": post.link,
        "media": [{"url": each.url, "alt_text": each.alt_text, "sha256": each.sha256} for each in post.media],
    }


def classify_webhook(answer: Answer) -> ProviderError:
    """Returns what an answer means by its status, as Standard Webhooks says; the class OK for 2xx."""
    by_hundred = _CLASSES_BY_HUNDRED.get(answer.status // 100, ErrorClass.UNKNOWN_OUTCOME)
    kind = _CLASSES.get(answer.status, by_hundred)
    return ProviderError(kind=kind, reason=f"HTTP_{answer.status}", message=_message(answer), wait=retry_after(answer))


def _outcome(post: Post, answer: Answer) -> Outcome:
    """Returns what the answer to a post means.

    A receiver that answers 5xx, or a gateway in front of it, may have taken the post all the same, and so may one that
    redirects as a form does after its work. None of them proves anything: the post is sent again under its id.
    """
    error = classify_webhook(answer)
    if error.kind is ErrorClass.OK:
        return _accepted(post, object_of(answer.body))
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _AFTER_WORK:
        return Ambiguous(reason=error.reason, message=error.message)
    return outcome_of(error)


def _accepted(post: Post, body: Mapping[str, Any]) -> Accepted:
    """Returns the acceptance, by the name and the URL that the receiver gives the post, if it gives any."""
    name, url = body.get("id"), text_in(body, "url")
    is_link = url.startswith("https://") and url == body["url"] and url.isprintable() and " " not in url
    return Accepted(
        external_id=name if is_post_name(name) else post.idempotency_key,
        external_url=url if is_link else "",
    )


def _message(answer: Answer) -> str:
    quoted = " ".join(storable(answer.body[: 4 * _LONGEST_QUOTE].decode("utf-8", "replace")).split())[:_LONGEST_QUOTE]
    return f"the webhook answered {answer.status}" + (f": {quoted}" if quoted else "")


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
