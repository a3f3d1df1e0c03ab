"""The `postflow` command, which operators run beside the services."""

import argparse
import sys
from importlib.metadata import version

from postflow_cli import mails, migrate, operations, streams


def main() -> int:
    options = _parser().parse_args()
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="postflow", description="Tools for operators of PostFlow.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    migrate.add_to(commands)
    streams.add_to(commands)
    operations.add_to(commands)
    mails.add_to(commands)
    shown = commands.add_parser("version", help="print the version of PostFlow")
    shown.set_defaults(run=_version)
    return parser


def _version(_options: argparse.Namespace) -> int:
    sys.stdout.write(f"PostFlow {version('postflow')} on Python {sys.version.split()[0]}, tzdata {version('tzdata')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
