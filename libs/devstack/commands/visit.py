"""Commands for a stack that runs: they find its servers and settings by the record in its folder."""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from urllib.parse import unquote, urlsplit

from devstack import running
from devstack.errors import StackError
from devstack.servers.binaries import postgres_client


def psql(folder: Path, service: str, arguments: list[str]) -> int:
    """Becomes psql. The password is passed in the environment, which other users cannot read."""
    url = urlsplit(running.find(folder).database_urls[service])
    shown = url.netloc.replace(f":{url.password}@", "@", 1)
    program = postgres_client("psql") or shutil.which("psql")
    if program is None:
        raise StackError("psql is missing: install the dependency group `devstack`, or PostgreSQL's client")
    login = {"PGPASSWORD": unquote(url.password or ""), "PGAPPNAME": "psql"}
    address = url._replace(scheme="postgresql", netloc=shown).geturl()
    os.execve(program, ["psql", address, *arguments], os.environ | login)


def streams(folder: Path, peek: int) -> int:
    """Becomes `postflow streams`, which operators run in production."""
    program = Path(sysconfig.get_path("scripts"), "postflow")
    nats_url = running.find(folder).nats_url
    os.execve(program, ["postflow", "streams", "--peek", str(peek)], os.environ | {"POSTFLOW_NATS_URL": nats_url})


def env(folder: Path, service: str) -> int:
    for name, value in sorted(running.find(folder).settings[service].items()):
        sys.stdout.write(f"{name}={shlex.quote(value)}\n")
    return 0
