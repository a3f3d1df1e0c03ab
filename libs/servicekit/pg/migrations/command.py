"""`postflow-migrate`: brings the database of a service, or of all, to the revision that this release needs.

Exit codes: 0 done, or nothing to do; 1 a migration failed, or the server is away; 2 the arguments or the settings are
wrong; 3 with --check: migrations are pending.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points

from servicekit.pg import errors, migrations
from servicekit.run.addresses import check_postgres, misconfiguration, without_password
from servicekit.run.settings import Secret, SettingsError, variable_of
from servicekit.run.transient import is_transient

ALL = "all"
GROUP = "postflow.migrations"
"""The entry points by which a service names the package of its migrations."""

_DONE, _FAILED, _MISCONFIGURED, _PENDING = 0, 1, 2, 3
assert errors  # knows what the database's refusals mean


def main() -> int:
    packages = {each.name: each.value for each in entry_points(group=GROUP)}
    options = _parser(sorted(packages)).parse_args()
    services = sorted(packages) if options.service == ALL else [options.service]
    if options.to and len(services) > 1:
        sys.stderr.write("postflow-migrate: --to needs one service: each has revisions of its own\n")
        return _MISCONFIGURED
    codes = [_one(service, packages[service], os.environ, check=options.check, to=options.to) for service in services]
    return max(codes)


def _parser(services: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="postflow-migrate",
        description="""Migrates the database of a service, or of all, to the revision that this release needs. Run it
        before the new release is rolled out: old processes work on a newer database. It may be repeated, and run twice
        at once.""",
        epilog="""POSTFLOW_<SERVICE>_DATABASE_URL (or POSTFLOW_DATABASE_URL) names the database. Exit codes: 0 done,
        1 failed, 2 wrong arguments or settings, 3 migrations are pending (--check).""",
    )
    parser.add_argument("service", choices=[*services, ALL])
    parser.add_argument("--check", action="store_true", help="change nothing; say whether something is pending")
    parser.add_argument("--to", default="", metavar="REVISION", help="stop at this revision, such as 0003; never back")
    return parser


def _one(service: str, package: str, environ: Mapping[str, str], *, check: bool, to: str) -> int:
    variable = variable_of("database_url", service, environ)
    url = environ.get(variable, "")
    try:
        if not url:
            raise SettingsError(f"{variable} (or POSTFLOW_DATABASE_URL) is not set")
        _check_url(variable, url)
        return asyncio.run(_migrate(service, package, url, check=check, to=to))
    except SettingsError as error:
        return _say(service, str(error), _MISCONFIGURED)
    except Exception as error:
        place = f"{variable}: {without_password(url)}"
        if wrong := misconfiguration(error):
            return _say(service, f"{place}: {wrong.complaint}", _MISCONFIGURED)
        if is_transient(error):
            return _say(service, f"{place}: {error or type(error).__name__}", _FAILED)
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
        _tell(service, f"at {found or 'nothing'}, {f'{wanted} is pending' if pending else 'nothing is pending'}")
        return _PENDING if pending else _DONE
    if found < wanted:
        _tell(service, f"from {found or 'nothing'} to {wanted}")
    await migrations.upgrade(url, package, to)
    _tell(service, f"at {(await migrations.state(url)).revision}")
    return _DONE


def _tell(service: str, text: str) -> None:
    sys.stdout.write(f"{service}: {text}\n")
    sys.stdout.flush()


def _say(service: str, text: str, code: int) -> int:
    first = text.partition("\n")[0]
    sys.stderr.write(f"postflow-migrate: {service}: {first}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
