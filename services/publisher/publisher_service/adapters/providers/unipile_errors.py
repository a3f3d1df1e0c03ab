"""Errors of Unipile by their type (https://developer.unipile.com/reference), and what they mean for a message."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from publisher_service.adapters.providers.answers import object_of, retry_after, text_in
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.domain.provider_error import ErrorClass, ProviderError

_PREFIX: Final = "errors/"
# LinkedIn's limits are those of a day or a week.
_NEXT_DAY: Final = timedelta(hours=24)
_BACK_OFF: Final = timedelta(minutes=30)

_TYPES: Final[Mapping[ErrorClass, str]] = {
    # Our own key, plan or use of the API.
    ErrorClass.CONFIG: "missing_credentials insufficient_privileges payment_error",
    ErrorClass.AUTH_REVOKED: """
        disconnected_account disconnected_feature expired_credentials invalid_credentials wrong_account
    """,
    ErrorClass.AUTH_USER_ACTION: """
        account_configuration_error account_restricted action_required captcha_not_supported checkpoint_error
        expired_link invalid_checkpoint_solution invalid_imap_configuration invalid_proxy_credentials
        invalid_smtp_configuration multiple_sessions session_mismatch unknown_authentication_context
    """,
    ErrorClass.PERMANENT: """
        account_mismatch cannot_invite_attendee cant_send_message content_too_large feature_not_implemented
        feature_not_subscribed insufficient_permissions invalid_account invalid_headers invalid_message
        invalid_parameters invalid_url malformed_request missing_parameters no_connection_with_recipient
        not_allowed_inmail resource_access_restricted send_as_denied sender_rejected subscription_required
        too_many_characters unauthorized unescaped_characters unprocessable_entity
    """,
    ErrorClass.PERMANENT_MEDIA: "unsupported_media_type",
    ErrorClass.TARGET_GONE: """
        blocked_recipient invalid_recipient invalid_resource_identifier recipient_rejected resource_not_found
        user_unreachable
    """,
    ErrorClass.DUPLICATE_HINT: "action_already_performed already_connected already_invited_recently",
    ErrorClass.QUOTA_EXHAUSTED: """
        cannot_resend_within_24hrs cannot_resend_yet connection_limit_reached insufficient_credits limit_exceeded
    """,
    ErrorClass.RATE_USER: "too_many_requests",
    ErrorClass.BLOCKED_POLICY: "ip_rejected_by_server",
    ErrorClass.RETRY_LATER: "auth_in_progress no_channel no_client_session no_handler realtime_client_not_initialized",
    # An excess of LinkedIn's limits may show as one of these, too.
    ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH: """
        authentication_intent_error network_down provider_error provider_unreachable service_unavailable
        unexpected_error
    """,
    ErrorClass.UNKNOWN_OUTCOME: "request_timeout",
}
_CLASSES: Final = {name: kind for kind, names in _TYPES.items() for name in names.split()}
_BY_STATUS: Final[Mapping[int, ErrorClass]] = {
    400: ErrorClass.PERMANENT,
    401: ErrorClass.AUTH_USER_ACTION,
    403: ErrorClass.PERMANENT,
    404: ErrorClass.TARGET_GONE,
    # The key of an e-mail was used before, by this very post if anybody's: its first request may be out.
    409: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    415: ErrorClass.PERMANENT_MEDIA,
    422: ErrorClass.PERMANENT,
    429: ErrorClass.RATE_USER,
}
_WAITS: Final = {ErrorClass.QUOTA_EXHAUSTED: _NEXT_DAY, ErrorClass.RATE_USER: _BACK_OFF}


def classify_unipile(answer: Answer) -> ProviderError:
    """Returns what an answer means by its type; what has none of Unipile's is of a proxy, and proves nothing."""
    body = object_of(answer.body)
    kind, name = _kind(answer.status, body)
    words = [text for text in (text_in(body, "title"), text_in(body, "detail")) if text]
    wait = _WAITS.get(kind)
    return ProviderError(
        kind=kind,
        reason=name.upper() if name in _CLASSES else f"HTTP_{answer.status}",
        message=": ".join(words) or f"Unipile answered {answer.status}",
        wait=max(wait, retry_after(answer) or wait) if wait else None,
    )


def is_about_the_account(answer: Answer, *, is_mail: bool) -> bool:
    """Returns whether an answer 404 says that the account, not the recipient, is unknown.

    No address is looked up before a mail is sent, so that only the account can be missing.
    """
    body = object_of(answer.body)
    is_named = "account" in f"{text_in(body, 'title')} {text_in(body, 'detail')}".lower()
    return answer.status == 404 and (is_mail or is_named)


def _kind(status: int, body: Mapping[str, Any]) -> tuple[ErrorClass, str]:
    kind = text_in(body, "type")
    name = kind.removeprefix(_PREFIX)
    if not kind.startswith(_PREFIX) or status < 400:
        return ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH, name
    if status == 429:
        return ErrorClass.RATE_USER, name
    return _CLASSES.get(name) or _BY_STATUS.get(status, ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH), name
