"""Social accounts, as Publisher announces that they are connected or not."""

from postflow.publisher.v1 import publisher_events_pb2, social_account_pb2
from queue_service.domain.account import Connection
from queue_service.wire.required import required


def connection(
    message: publisher_events_pb2.SocialAccountConnected | publisher_events_pb2.SocialAccountDisconnected,
) -> Connection:
    return Connection(
        organization_id=required(message.organization_id, "organization_id"),
        social_account_id=required(message.social_account.id, "id"),
        version=message.social_account.version,
        is_connected=isinstance(message, publisher_events_pb2.SocialAccountConnected),
    )


def shown_connection(organization_id: str, account: social_account_pb2.SocialAccount) -> Connection:
    """Returns what an answer of Publisher says, which has the same versions as the events."""
    return Connection(
        organization_id=organization_id,
        social_account_id=account.id,
        version=account.version,
        is_connected=account.state == social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED,
    )
