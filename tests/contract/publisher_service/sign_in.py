"""Visits to the fakes of networks, and requests for tokens there, through the guard of a provider."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.faults import Fault, Rule
from devstack.networks.instagram import InstagramNetwork
from devstack.networks.linkedin import VERSION, LinkedIn
from devstack.networks.linkedin_tokens import CLIENT_ID, CLIENT_SECRET
from devstack.networks.meta import APP_ID, APP_SECRET
from devstack.networks.network import Network
from publisher_service.adapters.pkce import challenge_of, new_state, new_verifier
from publisher_service.adapters.providers.adapter import Adapter, Limits
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.adapters.providers.instagram_login import Login
from publisher_service.adapters.providers.instagram_sign_in import InstagramSignIn
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.adapters.providers.linkedin_page import LinkedInPageAdapter
from publisher_service.adapters.providers.oauth_application import Application
from publisher_service.adapters.providers.provider import Provider
from publisher_service.domain.connecting import Candidate, Grant, GrantAnswer
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshAnswer
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder

BACK = "https://app.example.com/connected"
LIMITS = Limits(request_timeout=timedelta(seconds=2))
HASTY = Limits(request_timeout=timedelta(milliseconds=300))
META_APP = Application(client_id=APP_ID, client_secret=APP_SECRET)
LINKEDIN_APP = Application(client_id=CLIENT_ID, client_secret=CLIENT_SECRET)

Connect = Callable[..., HttpOrigin]
Fake = TypeVar("Fake", bound=Network)


@dataclass(frozen=True)
class Visit:
    """A visit that a person has ended: what came back, and what only those know who began it."""

    code: str
    verifier: str
    asked: Mapping[str, str] = field(repr=False)


@dataclass
class SignIn(Generic[Fake]):
    network: Fake
    clock: FrozenClock
    provider: Provider
    origin: HttpOrigin

    async def visit(self) -> Visit:
        state, verifier = new_state(), new_verifier()
        url = self.provider.authorization_url(state, challenge_of(verifier), BACK)
        async with aiohttp.request("GET", url, allow_redirects=False) as answer:
            assert answer.status == 302, await answer.text()
            back = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        assert back["state"] == state
        return Visit(back["code"], verifier, dict(parse_qsl(urlsplit(url).query)))

    async def exchange(self, visit: Visit, *, verifier: str = "", redirect_uri: str = BACK) -> GrantAnswer:
        return await self.provider.exchange(visit.code, verifier or visit.verifier, redirect_uri)

    async def connect(self) -> Grant:
        answer = await self.exchange(await self.visit())
        assert isinstance(answer, Grant), answer
        return answer

    async def candidate(self) -> Candidate:
        """Returns the first of the accounts that a person grants."""
        return (await self.connect()).candidates[0]

    async def refresh(self, account: str, credentials: Credentials) -> RefreshAnswer:
        return await self.provider.refresh(account, credentials, {})

    def breaks(self, operation: str, fault: Fault, *, effect: bool = False, count: int = 1, **more: object) -> None:
        self.network.faults.add(
            Rule(fault=fault, operation=operation, effect=effect, count=count, **more)  # type: ignore[arg-type]
        )

    def calls(self, operation: str) -> int:
        return sum(name == operation for name, _ in self.network.calls)


@asynccontextmanager
async def facebook_sign_in(
    folder: Path, *, limits: Limits = LIMITS, app: Application = META_APP, connect: Connect = HttpOrigin
) -> AsyncIterator[SignIn[FacebookNetwork]]:
    clock = FrozenClock()
    async with FacebookNetwork(clock=clock) as network:
        network.pages["user-1"] = ["page-1", "page-2"]
        origin = connect(network.url, connections=4)
        adapter = FacebookAdapter(origin, limits, media=MediaFolder(folder), app=app, dialog_url=network.url)
        yield SignIn(network, clock, Provider(adapter, clock), origin)
        await origin.close()
        assert (network.problems, network.open_secrets) == ([], 0)


@asynccontextmanager
async def instagram_sign_in(
    folder: Path, login: Login, *, limits: Limits = LIMITS, connect: Connect = HttpOrigin
) -> AsyncIterator[SignIn[InstagramNetwork]]:
    clock = FrozenClock()
    async with InstagramNetwork(clock=clock) as network:
        network.pages["user-1"] = ["page-1", "page-2"]
        network.instagram_of = {"page-2": ("300400178410", "acme"), "user-1": ("300400178410", "acme")}
        origin = connect(network.url, connections=4)
        chosen = InstagramSignIn(app=META_APP, codes=origin, dialog_url=network.url, login=login)
        adapter = InstagramAdapter(origin, limits, media=MediaFolder(folder), clock=clock, sign_in=chosen)
        yield SignIn(network, clock, Provider(adapter, clock), origin)
        await origin.close()
        assert network.problems == []


@asynccontextmanager
async def linkedin_sign_in(
    folder: Path,
    *,
    is_page: bool = False,
    limits: Limits = LIMITS,
    app: Application = LINKEDIN_APP,
    connect: Connect = HttpOrigin,
) -> AsyncIterator[SignIn[LinkedIn]]:
    clock = FrozenClock()
    async with LinkedIn(clock=clock) as network:
        network.is_partner = True
        origin = connect(network.url, connections=4)
        make = LinkedInPageAdapter if is_page else LinkedInAdapter
        adapter: Adapter = make(
            origin, limits, version=VERSION, media=MediaFolder(folder), clock=clock, app=app, sign_in=origin
        )
        yield SignIn(network, clock, Provider(adapter, clock), origin)
        await origin.close()
        assert network.problems == []
