"""`postflow stats` and `postflow dead-letters`: the operators' calls of a process, without grpcurl."""

import argparse
import sys
from collections.abc import Callable, Iterator

import grpc

from postflow.ops.v1 import operations_service_pb2 as pb
from postflow.ops.v1.operations_service_pb2_grpc import OperationsServiceStub
from postflow_cli.subcommand import Subcommands, complain
from postflow_cli.text import age, printable

_DONE, _FAILED = 0, 1
_SECONDS = 10
_REDRIVE_SECONDS = 60
"""For a page of 50, each applied in a transaction of its own."""
Operation = Callable[[OperationsServiceStub, argparse.Namespace], int]


def add_to(commands: Subcommands) -> None:
    stats = commands.add_parser(
        "stats",
        help="show how a process is: consumers, outbox, the numbers of its service",
        description="Shows release and schema of a process, its consumers, the backlog of its outbox, and its numbers.",
    )
    _add_target(stats, _stats)

    letters = commands.add_parser("dead-letters", help="list, redrive or archive what consumers could not apply")
    actions = letters.add_subparsers(required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list dead letters, oldest first")
    _add_target(listed, _list)
    listed.add_argument("--consumer", default="", help="only those of this consumer, such as queue-events")
    listed.add_argument("--all", action="store_true", help="also those that were redriven or archived")

    redrive = actions.add_parser(
        "redrive",
        help="apply the open dead letters of a consumer again",
        description="""Applies each open dead letter of the consumer as the consumer would. One that fails stays open
        with the new reason, and the exit code is 1.""",
    )
    _add_target(redrive, _redrive)
    redrive.add_argument("consumer", metavar="CONSUMER", help="such as queue-events")

    archive = actions.add_parser("archive", help="close dead letters that nobody needs")
    _add_target(archive, _archive)
    archive.add_argument("ids", nargs="+", metavar="ID")


def _add_target(parser: argparse.ArgumentParser, operation: Operation) -> None:
    parser.add_argument("target", metavar="HOST:PORT", help="the gRPC address of a process of the service")
    parser.set_defaults(run=lambda options: _run(operation, options, parser.prog))


def _run(operation: Operation, options: argparse.Namespace, program: str) -> int:
    # A channel without health checks: a process that is not serving is the one to ask.
    with grpc.insecure_channel(options.target) as channel:
        try:
            return operation(OperationsServiceStub(channel), options)
        except grpc.RpcError as error:
            return complain(program, f"{options.target}: {error.code().name}: {error.details()}", _FAILED)


def _stats(service: OperationsServiceStub, _options: argparse.Namespace) -> int:
    for line in _described(service.GetStats(pb.GetStatsRequest(), timeout=_SECONDS)):
        _say(line)
    return _DONE


def _described(stats: pb.GetStatsResponse) -> Iterator[str]:
    yield f"{stats.service} {stats.version}, instance {stats.instance}, since {stats.start_time.ToJsonString()}"
    yield f"schema revision {stats.schema_revision}, needs {stats.needed_schema_revision}"
    waiting = f", the oldest for {age(stats.outbox.oldest_age.ToTimedelta())}" if stats.outbox.backlog else ""
    yield f"outbox: {stats.outbox.backlog:,} messages to announce{waiting}"
    for each in stats.consumers:
        failing = f", cannot apply {', '.join(each.failing_types)}" if each.failing_types else ""
        state = pb.ConsumerState.Name(each.state).removeprefix("CONSUMER_STATE_")
        yield f"consumer {each.consumer}: {state}, {each.open_dead_letters:,} open dead letters{failing}"
    for number in stats.numbers:
        yield f"{number.name}: {number.value:,g} {number.unit}".rstrip()


def _list(service: OperationsServiceStub, options: argparse.Namespace) -> int:
    states = [] if options.all else [pb.DEAD_LETTER_STATE_OPEN]
    letter = None
    for letter in _letters(service, pb.ListDeadLettersRequest(consumer=options.consumer, states=states)):
        state = pb.DeadLetterState.Name(letter.state).removeprefix("DEAD_LETTER_STATE_")
        about = f"{letter.organization_id or '-'} {letter.consumer} {letter.subject}"
        _say(f"{letter.id} {letter.create_time.ToJsonString()} {state} {printable(about)}: {printable(letter.reason)}")
    if letter is None:
        sys.stderr.write(f"no {'' if options.all else 'open '}dead letters\n")
    return _DONE


def _letters(service: OperationsServiceStub, request: pb.ListDeadLettersRequest) -> Iterator[pb.DeadLetter]:
    while True:
        page = service.ListDeadLetters(request, timeout=_SECONDS)
        yield from page.dead_letters
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _redrive(service: OperationsServiceStub, options: argparse.Namespace) -> int:
    request = pb.RedriveDeadLettersRequest(consumer=options.consumer)
    applied = failed = 0
    while True:
        page = service.RedriveDeadLetters(request, timeout=_REDRIVE_SECONDS)
        for result in page.results:
            if result.redriven:
                applied += 1
            else:
                failed += 1
                _say(f"{result.dead_letter_id} failed: {printable(result.reason)}")
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    _say(f"{applied:,} applied, {failed:,} failed and stay open")
    return _FAILED if failed else _DONE


def _archive(service: OperationsServiceStub, options: argparse.Namespace) -> int:
    answer = service.ArchiveDeadLetters(pb.ArchiveDeadLettersRequest(dead_letter_ids=options.ids), timeout=_SECONDS)
    _say(f"{len(answer.dead_letter_ids)} archived, {len(set(options.ids)) - len(answer.dead_letter_ids)} were not open")
    return _DONE


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
