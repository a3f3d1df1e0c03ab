import asyncio
import re
import signal
import sys
from collections.abc import Iterator

import pytest

from servicekit import failpoints
from servicekit.failpoints import Action, FailpointHit, FailpointSpecError, failpoint

PLACE = failpoints.declare("test.place")
OTHER = failpoints.declare("test.other")


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.install("", "development")


async def test_a_failpoint_is_inert_by_default() -> None:
    await failpoint(PLACE)


async def test_raise_raises_there_and_nowhere_else() -> None:
    failpoints.install(f"{PLACE}=raise", "development")
    await failpoint(OTHER)
    with pytest.raises(FailpointHit, match=PLACE):
        await failpoint(PLACE)


async def test_an_improbable_failpoint_is_passed_sometimes() -> None:
    failpoints.install(f"{PLACE}=raise:0.5", "development")
    hits = 0
    for _ in range(200):
        try:
            await failpoint(PLACE)
        except FailpointHit:
            hits += 1
    assert 0 < hits < 200


async def test_once_acts_at_the_first_passage_only() -> None:
    failpoints.install(f"{PLACE}=raise:once", "development")
    with pytest.raises(FailpointHit):
        await failpoint(PLACE)
    await failpoint(PLACE)


async def test_drop_breaks_the_connections_of_clients_that_still_exist() -> None:
    kept, gone = Client(), Client()
    failpoints.droppable(kept)
    failpoints.droppable(gone)
    del gone
    failpoints.install(f"{PLACE}=drop", "development")
    await failpoint(PLACE)
    assert kept.drops == 1


class Client:
    def __init__(self) -> None:
        self.drops = 0

    def drop_connections(self) -> None:
        self.drops += 1


async def test_sleep_waits() -> None:
    failpoints.install(f"{PLACE}=sleep:3600", "development")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await failpoint(PLACE)


async def test_kill_ends_the_process_at_once() -> None:
    script = (
        "import asyncio, atexit\n"
        "from servicekit import failpoints\n"
        "atexit.register(print, 'exit handlers ran')\n"
        "failpoints.declare('here')\n"
        "failpoints.install('here=kill', 'development')\n"
        "asyncio.run(failpoints.failpoint('here'))\n"
        "print('still alive')\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert (process.returncode, output) == (-signal.SIGKILL, b"")


def test_a_specification_names_actions() -> None:
    assert failpoints.parse(" a=kill, b=sleep:1.5,c=raise:0.25 ,d=sleep:2:0.5,e=drop,f=sleep:2:once ") == {
        "a": Action(kind="kill"),
        "b": Action(kind="sleep", seconds=1.5),
        "c": Action(kind="raise", probability=0.25),
        "d": Action(kind="sleep", seconds=2, probability=0.5),
        "e": Action(kind="drop"),
        "f": Action(kind="sleep", seconds=2, once=True),
    }


@pytest.mark.parametrize(
    "entry",
    [
        "a",
        "a=",
        "a=boom",
        "a=sleep",
        "a=sleep:x",
        "a=sleep:-1",
        "a=sleep:nan",
        "a=raise:2",
        "a=kill:1:1",
        "a=drop:x",
        "=kill",
    ],
)
def test_an_invalid_specification_is_a_clear_error(entry: str) -> None:
    with pytest.raises(FailpointSpecError, match=re.escape(repr(entry))):
        failpoints.install(entry, "development")


def test_an_undeclared_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FailpointSpecError, match=r"unknown failpoints test\.plaice; known: .*test\.place"):
        failpoints.install("test.plaice=kill", "development")


def test_production_refuses_failpoints() -> None:
    with pytest.raises(FailpointSpecError, match="production"):
        failpoints.install(f"{PLACE}=raise", "production")


def test_production_without_failpoints_is_fine() -> None:
    failpoints.install("", "production")


def test_a_name_is_declared_once() -> None:
    with pytest.raises(FailpointSpecError, match="twice"):
        failpoints.declare(PLACE)
    assert PLACE in failpoints.declared()
