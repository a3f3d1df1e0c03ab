"""Visits to providers: the calls that begin and end them."""

from postflow.publisher.v1 import social_account_service_pb2 as pb
from publisher_service.domain.account import SocialAccount
from publisher_service.domain.connecting import FinishedSession, Return, StartedSession, WantedSession
from publisher_service.wire.accounts import normalised_channels, settings_from, social_account
from servicekit.timestamps import timestamp


def wanted_session_from(request: pb.StartConnectRequest) -> WantedSession:
    """Translates a request. Raises InvalidField for an unknown channel, and for a setting that none can be."""
    return WantedSession(
        organization_id=request.organization_id,
        provider=request.provider,
        redirect_uri=request.redirect_uri,
        account_id=request.social_account_id,
        display_name=request.display_name,
        channels=normalised_channels(request.channels),
        settings=settings_from(request.settings),
    )


def start_connect_response(started: StartedSession) -> pb.StartConnectResponse:
    return pb.StartConnectResponse(
        authorization_url=started.authorization_url, state=started.state, expire_time=timestamp(started.expire_time)
    )


def return_from(request: pb.FinishConnectRequest) -> Return:
    return Return(state=request.state, code=request.code, external_account_id=request.external_account_id)


def finish_connect_response(finished: FinishedSession) -> pb.FinishConnectResponse:
    return pb.FinishConnectResponse(
        social_account=None if finished.account is None else social_account(finished.account),
        candidates=[
            pb.ConnectCandidate(external_account_id=each.external_account_id, name=each.name, channels=each.channels)
            for each in finished.candidates
        ],
    )


def refresh_credentials_response(account: SocialAccount) -> pb.RefreshCredentialsResponse:
    return pb.RefreshCredentialsResponse(social_account=social_account(account))
