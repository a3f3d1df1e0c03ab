"""A client of Publisher, for accounts that it has not announced as connected yet."""

import grpc

from postflow.publisher.v1 import (
    social_account_pb2,
    social_account_service_pb2,
    social_account_service_pb2_grpc,
)
from servicekit.rpc import calling

_SHORT_TIMEOUT = 1.0
"""The timeout in seconds: a slot can be given without the answer."""


class PublisherClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._service = social_account_service_pb2_grpc.SocialAccountServiceStub(channel)

    async def is_connected(self, organization_id: str, social_account_id: str) -> bool:
        """Raises NotFound for an unknown account. Returns True if Publisher runs the release that lacks the RPC."""
        request = social_account_service_pb2.GetAccountRequest(
            organization_id=organization_id, social_account_id=social_account_id
        )
        try:
            with calling():
                found = await self._service.GetAccount(request, timeout=_SHORT_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return True
            raise
        state = found.social_account.state
        return bool(state == social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED)
