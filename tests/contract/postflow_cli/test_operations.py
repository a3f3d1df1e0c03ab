"""`postflow stats` and `postflow dead-letters` against a server that answers as a service would."""

import asyncio
import os
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from postflow.ops.v1 import operations_service_pb2 as pb
from postflow.ops.v1.operations_service_pb2_grpc import (
    OperationsServiceServicer,
    add_OperationsServiceServicer_to_server,
)

OPEN, REDRIVEN = pb.DEAD_LETTER_STATE_OPEN, pb.DEAD_LETTER_STATE_REDRIVEN
LETTERS = [
    pb.DeadLetter(
        id="l1", organization_id="acme", consumer="queue-events", subject="DraftSaved", reason="TOO_ODD", state=OPEN
    ),
    pb.DeadLetter(id="l2", consumer="queue-events", subject="evil\x1b[2J", reason="cannot be read", state=OPEN),
    pb.DeadLetter(id="l3", consumer="other", subject="DraftSaved", reason="TOO_ODD", state=REDRIVEN),
]


class Operations(OperationsServiceServicer):
    """Pages one by one, and applies every dead letter but `l2`."""

    async def GetStats(self, request: pb.GetStatsRequest, context: object) -> pb.GetStatsResponse:
        stats = pb.GetStatsResponse(service="queue", version="0.1.0", instance="host-7", schema_revision="0006")
        stats.needed_schema_revision = "0005"
        stats.start_time.FromJsonString("2026-03-02T09:00:00Z")
        stats.outbox.backlog = 1200
        stats.outbox.oldest_age.FromSeconds(75)
        stats.consumers.add(
            consumer="queue-events", state=pb.CONSUMER_STATE_FAILING, failing_types=["DraftSaved"], open_dead_letters=2
        )
        stats.numbers.add(name="slots.scheduled", value=12345)
        return stats

    async def ListDeadLetters(self, request: pb.ListDeadLettersRequest, context: object) -> pb.ListDeadLettersResponse:
        found = [each for each in LETTERS if request.consumer in {"", each.consumer}]
        found = [each for each in found if not request.states or each.state in request.states]
        first = int(request.page_token or 0)
        token = str(first + 1) if first + 1 < len(found) else ""
        return pb.ListDeadLettersResponse(dead_letters=found[first : first + 1], next_page_token=token)

    async def RedriveDeadLetters(
        self, request: pb.RedriveDeadLettersRequest, context: object
    ) -> pb.RedriveDeadLettersResponse:
        found = [each.id for each in LETTERS if each.consumer == request.consumer]
        first = int(request.page_token or 0)
        answer = pb.RedriveDeadLettersResponse(next_page_token=str(first + 1) if first + 1 < len(found) else "")
        bad = found[first] == "l2"
        answer.results.add(dead_letter_id=found[first], redriven=not bad, reason="still odd" if bad else "")
        return answer

    async def ArchiveDeadLetters(
        self, request: pb.ArchiveDeadLettersRequest, context: object
    ) -> pb.ArchiveDeadLettersResponse:
        open_ones = {each.id for each in LETTERS if each.state == OPEN}
        archived = [each for each in request.dead_letter_ids if each in open_ones]
        return pb.ArchiveDeadLettersResponse(dead_letter_ids=archived)


@pytest.fixture
async def target() -> AsyncIterator[str]:
    server = grpc.aio.server()
    add_OperationsServiceServicer_to_server(Operations(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


async def _postflow(*arguments: str) -> tuple[int, list[str], str]:
    process = await asyncio.create_subprocess_exec(
        Path(sysconfig.get_path("scripts"), "postflow"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode().splitlines(), err.decode()


async def test_stats_say_how_a_process_is(target: str) -> None:
    assert await _postflow("stats", target) == (
        0,
        [
            "queue 0.1.0, instance host-7, since 2026-03-02T09:00:00Z",
            "schema revision 0006, needs 0005",
            "outbox: 1,200 messages to announce, the oldest for 0:01:15",
            "consumer queue-events: FAILING, 2 open dead letters, cannot apply DraftSaved",
            "slots.scheduled: 12,345",
        ],
        "",
    )


async def test_open_dead_letters_are_listed_over_all_pages(target: str) -> None:
    code, lines, _ = await _postflow("dead-letters", "list", target)
    assert code == 0
    assert [line.split()[0] for line in lines] == ["l1", "l2"]
    assert lines[0].endswith(" OPEN acme queue-events DraftSaved: TOO_ODD")
    assert "\x1b" not in lines[1]


async def test_closed_ones_are_listed_on_request_and_by_consumer(target: str) -> None:
    _, lines, _ = await _postflow("dead-letters", "list", target, "--all", "--consumer", "other")
    assert [line.split()[0] for line in lines] == ["l3"]
    assert " REDRIVEN " in lines[0]


@pytest.mark.parametrize(("arguments", "kind"), [([], "open dead letters"), (["--all"], "dead letters")])
async def test_a_list_without_dead_letters_says_so_beside_it(target: str, arguments: list[str], kind: str) -> None:
    answer = await _postflow("dead-letters", "list", target, "--consumer", "nobody", *arguments)
    assert answer == (0, [], f"no {kind}\n")


async def test_a_redrive_goes_through_all_pages_and_fails_if_one_does(target: str) -> None:
    assert await _postflow("dead-letters", "redrive", target, "queue-events") == (
        1,
        ["l2 failed: still odd", "1 applied, 1 failed and stay open"],
        "",
    )
    assert (await _postflow("dead-letters", "redrive", target, "other"))[0] == 0


async def test_archiving_counts_those_that_were_open(target: str) -> None:
    assert await _postflow("dead-letters", "archive", target, "l1", "l3") == (0, ["1 archived, 1 were not open"], "")


async def test_an_unreachable_process_is_one_line() -> None:
    code, lines, error = await _postflow("stats", "127.0.0.1:1")
    assert (code, lines) == (1, [])
    assert error.startswith("postflow stats: 127.0.0.1:1: ")
    assert error.count("\n") == 1
