"""RefreshCredentials waits for the refresh that it has asked for, or for the one that was in flight."""

import asyncio
from typing import Any

import grpc
import pytest

from postflow.publisher.v1 import social_account_service_pb2 as pb
from servicekit.rpc import fault_from_error
from tests.usecase.publisher_service.rig import ORGANIZATION, Rig, Start


async def connect(rig: Rig, **terms: object) -> dict[str, Any]:
    pair = await rig.sandbox.issue_token("ext-page", seconds=3600, **terms)
    await rig.connect(token=pair["access_token"], refresh=pair["refresh_token"])
    return pair


async def refresh(rig: Rig, request_id: str = "") -> Any:
    request = pb.RefreshCredentialsRequest(
        organization_id=ORGANIZATION, social_account_id="page", request_id=request_id
    )
    return (await rig.accounts.RefreshCredentials(request)).social_account


async def refusal(rig: Rig) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await refresh(rig)
    return fault_from_error(refused.value).reason


async def test_a_call_returns_with_the_next_generation(start: Start) -> None:
    async with start() as rig:
        await connect(rig, rotating=True)
        account = await refresh(rig, "r1")
        assert account.credentials_info.generation == 2
        assert account.credentials_info.HasField("last_refresh_time")
        assert await refresh(rig, "r1") == account
        assert (await refresh(rig, "r2")).credentials_info.generation == 3


async def test_concurrent_calls_wait_for_one_refresh(start: Start) -> None:
    async with start() as rig:
        await connect(rig, rotating=True)
        await rig.sandbox.faults({"fault": "slow", "operation": "token", "seconds": 0.5, "count": 1})
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(refresh(rig)) for _ in range(5)]
        assert {each.result().credentials_info.generation for each in calls} == {2}
        presented = [line for line in rig.sandbox.ledger() if line.get("operation") == "token"]
        assert len(presented) == 1


async def test_a_provider_that_is_away_is_unavailable_and_asked_again(start: Start) -> None:
    async with start() as rig:
        await connect(rig)
        await rig.sandbox.faults({"fault": "status", "operation": "token", "count": 1})
        assert await refusal(rig) == "PROVIDER_UNAVAILABLE"
        assert (await refresh(rig)).credentials_info.generation == 2


async def test_a_refusal_of_the_provider_is_one_of_the_call(start: Start) -> None:
    async with start() as rig:
        await connect(rig)
        await rig.sandbox.revoke_tokens("ext-page")
        assert await refusal(rig) == "REFRESH_REFUSED"
        assert await refusal(rig) == "REFRESH_REFUSED"
        (account,) = await rig.rows("select state from social_account")
        assert account.state == "CONNECTED"


async def test_what_cannot_be_refreshed_is_refused(start: Start) -> None:
    async with start() as rig:
        assert await refusal(rig) == "ACCOUNT_NOT_FOUND"
        await rig.connect()
        assert await refusal(rig) == "NOT_REFRESHABLE"
        await rig.accounts.DisconnectAccount(
            pb.DisconnectAccountRequest(organization_id=ORGANIZATION, social_account_id="page")
        )
        assert await refusal(rig) == "ACCOUNT_NOT_CONNECTED"
