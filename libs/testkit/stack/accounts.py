"""Accounts under faults: disconnects them, connects them again, and caps them; remembers from when until when."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import grpc

from postflow.publisher.v1 import social_account_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import ACTION_POST
from postflow.publisher.v1.social_account_pb2 import DailyCap
from servicekit.clock import SystemClock
from testkit.stack.caps import Cap
from testkit.stack.stopping import DISCONNECTION, Insist, Stopping
from testkit.stack.stops import FOREVER, Scope
from testkit.stack.tenant import Tenant

CAP = "UpdateAccount"


class Accounts:
    def __init__(self, tenant: Tenant, insist: Insist, answers: Counter[str], stopping: Stopping) -> None:
        """Counts what was answered OK in `answers`."""
        self._tenant = tenant
        self._insist = insist
        self._answers = answers
        self._stopping = stopping
        self._caps: list[Cap] = []
        self._tokens = count(1)

    @property
    def caps(self) -> Sequence[Cap]:
        """The caps that were in force; those of one account in the order of time."""
        return tuple(self._caps)

    async def disconnect(self, account: str, request_id: str) -> None:
        request = pb.DisconnectAccountRequest(
            organization_id=self._tenant.organization_id, social_account_id=account, request_id=request_id
        )
        asked = SystemClock().now()
        answer = await self._insist(lambda: self._tenant.clients.accounts.DisconnectAccount(request))
        self._stopping.stopped(DISCONNECTION, asked, Scope(social_account_id=account), answer.in_flight_post_job_ids)

    async def connect_again(self, account: str, provider: str) -> None:
        token = f"sandbox-again-{next(self._tokens)}"
        self._stopping.ending(DISCONNECTION, account)
        await self._insist(lambda: self._tenant.connect(account, token, provider=provider))
        self._stopping.ended(DISCONNECTION, account)
        self._answers["ConnectAccount"] += 1

    async def cap(self, account: str, most: int | None, request_id: str, *, below_used: bool = False) -> None:
        """Sets the cap of the posts of a day; None removes it. A cap that is refused leaves the one before."""
        caps = [] if most is None else [DailyCap(action=ACTION_POST, most=most)]
        request = pb.UpdateAccountRequest(
            organization_id=self._tenant.organization_id,
            social_account_id=account,
            daily_caps=pb.DailyCapList(daily_caps=caps),
            allow_below_used=below_used,
            request_id=request_id,
        )
        key, asked = (self._tenant.organization_id, account), SystemClock().now()
        before = [index for index, cap in enumerate(self._caps) if cap.account == key and cap.until == FOREVER]
        for index in before:
            self._caps[index] = replace(self._caps[index], until=asked)
        try:
            await self._insist(lambda: self._tenant.clients.accounts.UpdateAccount(request))
        except grpc.aio.AioRpcError:
            self._answers[f"{CAP} refused"] += 1
            self._caps += [
                replace(self._caps[index], answered=SystemClock().now(), until=FOREVER, below_used=True)
                for index in before
            ]
            raise
        answered = SystemClock().now()
        for index in before:
            self._caps[index] = replace(self._caps[index], over=answered)
        self._answers[CAP] += 1
        self._caps.append(
            Cap(
                organization_id=key[0],
                social_account_id=account,
                most=most,
                asked=asked,
                answered=answered,
                below_used=below_used,
            )
        )
