"""`postflow migrate`, also installed as `postflow-migrate`: migrates databases to the revision of this release."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import entry_points

from postflow_cli.subcommand import Subcommands, complain
from servicekit.pg import errors, migrations
from servicekit.run.addresses import check_postgres, misconfiguration, without_password
from servicekit.run.settings import Secret, SettingsError, variable_of
from servicekit.run.transient import is_transient

ALL = "all"
GROUP = "postflow.migrations"
"""The entry points by which a service names the package of its migrations."""

assert errors  # Its import teaches `misconfiguration` and `is_transient` what the refusals of a database mean.
_DONE, _FAILED, _MISCONFIGURED, _PENDING = 0, 1, 2, 3
_DESCRIPTION = """Migrates the database of a service, or of all services, to the revision that this release needs. Run
it before you roll out the release: old processes work on the newer schema. It is safe to repeat, and to run twice at
once."""
_EPILOG = """POSTFLOW_<SERVICE>_DATABASE_URL (or POSTFLOW_DATABASE_URL) names the database. Exit codes: 0 done or
nothing to do, 1 failed or the server is unreachable, 2 wrong arguments or settings, 3 migrations are pending
(--check)."""


def main() -> int:
    return run(_with_arguments(argparse.ArgumentParser("postflow-migrate", description=_DESCRIPTION, epilog=_EPILOG)))


def add_to(commands: Subcommands) -> None:
    parser = commands.add_parser(
        "migrate", help="migrate the databases to this release", description=_DESCRIPTION, epilog=_EPILOG
    )
    _add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    packages = _packages()
    services = sorted(packages) if options.service == ALL else [options.service]
    refuse = partial(complain, options.program)
    if options.to and len(services) > 1:
        return refuse("--to needs one service: each has revisions of its own", _MISCONFIGURED)
    return max(
        _one(service, packages[service], os.environ, refuse, check=options.check, to=options.to) for service in services
    )


def _packages() -> dict[str, str]:
    return {each.name: each.value for each in entry_points(group=GROUP)}


def _with_arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    _add_arguments(parser)
    return parser.parse_args()


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", choices=[*sorted(_packages()), ALL])
    parser.add_argument("--check", action="store_true", help="change nothing; say whether migrations are pending")
    parser.add_argument("--to", default="", metavar="REVISION", help="stop at this revision, such as 0003; never back")
    parser.set_defaults(program=parser.prog)


def _one(
    service: str,
    package: str,
    environ: Mapping[str, str],
    refuse: Callable[[str, int], int],
    *,
    check: bool,
    to: str,
) -> int:
    variable = variable_of("database_url", service, environ)
    url = environ.get(variable, "")
    try:
        if not url:
            raise SettingsError(f"{variable} (or POSTFLOW_DATABASE_URL) is not set")
        _check_url(variable, url)
        return asyncio.run(_migrate(service, package, url, check=check, to=to))
    except SettingsError as error:
        return refuse(f"{service}: {error}", _MISCONFIGURED)
    except Exception as error:
        place = f"{service}: {variable}: {without_password(url)}"
        if wrong := misconfiguration(error):
            return refuse(f"{place}: {wrong.complaint}", _MISCONFIGURED)
        if is_transient(error):
            return refuse(f"{place}: {str(error) or type(error).__name__}", _FAILED)
        raise


def _check_url(variable: str, url: str) -> None:
    try:
        check_postgres(Secret(url))
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}") from None


async def _migrate(service: str, package: str, url: str, *, check: bool, to: str) -> int:
    found, wanted = await migrations.plan(url, package, to)
    if check:
        pending = found < wanted
        _say(f"{service}: at {found or 'nothing'}, {f'{wanted} is pending' if pending else 'nothing is pending'}")
        return _PENDING if pending else _DONE
    if found < wanted:
        _say(f"{service}: from {found or 'nothing'} to {wanted}")
    await migrations.upgrade(url, package, to)
    _say(f"{service}: at {(await migrations.state(url)).revision}")
    return _DONE


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
