"""Every fake network owes its tests the same: faults strike with or without effect, and effects are remembered."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest
from aiohttp import web

from devstack.networks.faults import Fault, Rule
from devstack.networks.network import Network, operation
from devstack.sandbox.ledger import Ledger
from testkit.eventually import eventually


class Wall(Network):
    """A network on which anybody writes."""

    name: ClassVar[str] = "wall"

    def routes(self) -> Iterable[web.RouteDef]:
        return (web.post("/{account}", self.write),)

    @operation("write")
    async def write(self, request: web.Request) -> web.Response:
        line = self.effect(request.match_info["account"], text=await request.text())
        return web.json_response({"id": line["time"]}, status=201)

    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": str(int(seconds))})

    def refused(self, request: web.Request) -> web.Response:
        return web.Response(status=400)

    def error(self) -> Mapping[str, Any]:
        return {"error": "no"}


@pytest.fixture
async def wall(tmp_path: Path) -> AsyncIterator[Wall]:
    async with Wall(tmp_path / "wall.jsonl") as network:
        yield network


async def written(wall: Wall, text: str = "hello", account: str = "ann", seconds: float = 20.0) -> tuple[int, bytes]:
    """Returns status and the first bytes of the answer."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        within = aiohttp.ClientTimeout(total=seconds)
        async with session.post(f"{wall.url}/{account}", data=text, timeout=within, allow_redirects=False) as answer:
            return answer.status, await answer.content.read(100_000)


async def test_an_effect_is_in_the_ledger_before_its_answer(wall: Wall, tmp_path: Path) -> None:
    assert (await written(wall))[0] == 201
    await wall.stop()
    lines = list(Ledger(tmp_path / "wall.jsonl").entries())
    assert [line["kind"] for line in lines] == ["request", "effect"]
    assert (lines[1]["account"], lines[1]["text"]) == ("ann", "hello")


LOST = (aiohttp.ClientError, TimeoutError)


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault.RESET, None),
        (Fault.HANG, None),
        (Fault.ANSWER, 503),
        (Fault.HTML, 200),
        (Fault.REDIRECT, 302),
        (Fault.ERROR_IN_200, 200),
        (Fault.GZIP_BOMB, 200),
        (Fault.ENDLESS, 200),
    ],
)
async def test_a_fault_strikes_with_or_without_effect(
    wall: Wall, fault: Fault, status: int | None, effect: bool
) -> None:
    wall.faults.add(Rule(fault=fault, effect=effect))
    if status is None:
        with pytest.raises(LOST):
            await written(wall, seconds=0.5)
    else:
        assert (await written(wall))[0] == status
    assert len(wall.effects) == effect
    assert (await written(wall, "again"))[0] == 201


async def test_a_nameless_answer_keeps_its_status(wall: Wall) -> None:
    wall.faults.add(Rule(fault=Fault.NAMELESS, effect=True))
    assert await written(wall) == (201, b"{}")
    assert len(wall.effects) == 1


async def test_a_rule_strikes_its_call_of_its_account(wall: Wall) -> None:
    wall.faults.add(Rule(fault=Fault.REFUSAL, account="bob", skip=1))
    seen = [(await written(wall, account=account))[0] for account in ("ann", "bob", "ann", "bob", "bob")]
    assert seen == [201, 201, 201, 400, 201]


async def test_a_slow_answer_comes_in_the_end(wall: Wall) -> None:
    wall.faults.add(Rule(fault=Fault.SLOW, seconds=0.05))
    assert (await written(wall))[0] == 201


async def test_faults_are_set_and_problems_asked_over_http(wall: Wall) -> None:
    wall.problem("it went too far")
    async with aiohttp.ClientSession() as session:
        async with session.put(f"{wall.url}/control/faults", json=[{"fault": "refusal", "count": 0}]) as answer:
            assert answer.status == 200
        async with session.put(f"{wall.url}/control/faults", json=[{"fault": "unheard"}]) as answer:
            assert answer.status == 422
        assert (await written(wall))[0] == 400
        async with session.get(f"{wall.url}/control/problems") as answer:
            assert await answer.json() == ["it went too far"]


async def test_a_network_that_stops_lets_no_client_hang(wall: Wall) -> None:
    wall.faults.add(Rule(fault=Fault.HANG))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_outcome(wall))
        await eventually(_is_called(wall))
        await wall.stop()
    assert waiting.result() is not None


def _is_called(wall: Wall) -> Callable[[], Awaitable[bool]]:
    async def is_called() -> bool:
        return bool(wall.calls)

    return is_called


async def _outcome(wall: Wall) -> BaseException | None:
    try:
        await written(wall)
    except LOST as error:
        return error
    return None
