"""The JSON that webhooks get: docs/notifications.md describes it for those who write receivers."""

import json

from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.wire.happenings import written

TYPES = {
    NotificationKind.POST_PUBLISHED: "post.published",
    NotificationKind.POST_FAILED: "post.failed",
    NotificationKind.POST_NEEDS_ATTENTION: "post.needs_attention",
    NotificationKind.ACCOUNT_DISCONNECTED: "account.disconnected",
    NotificationKind.ACCOUNT_EXPIRES_SOON: "account.expires_soon",
    NotificationKind.TEST: "test",
}


def webhook_payload(notification: Notification) -> bytes:
    """Returns the body of a message: the same bytes in every attempt."""
    message = {
        "type": TYPES[notification.kind],
        "timestamp": written(notification.time),
        "data": {"organization_id": notification.organization_id, **notification.facts},
    }
    return json.dumps(message, sort_keys=True, separators=(",", ":")).encode()
