"""Measures the refresh of the credentials of many accounts that are due at once, with rotating tokens."""

import asyncio
import base64
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import seed
from benchmarks.result import Result
from benchmarks.seed import Seeder
from benchmarks.statements import OPTIONS, StatementLog
from benchmarks.usage import cpu_seconds
from devstack.sandbox.client import SandboxClient
from devstack.stack import Stack
from publisher_service.adapters.vault import Vault
from publisher_service.domain.credentials import Credentials
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret
from testkit.eventually import eventually

_COUNTED = 1000
_LIMIT = 600
_AT_ONCE = 32
_SECONDS = 3600.0

_STORE = "update social_account set credentials = $3 where organization_id = $1 and id = $2"
_KNOW = """
    insert into credential (organization_id, social_account_id, provider, generation, expire_time, scopes,
        is_refreshable, number, failures, error, is_refused, is_urgent, is_forced, is_warned, sealed_digest)
    select organization_id, id, provider, 1, $1, '{}', true, 0, 0, '', false, false, false, false, sha256(credentials)
    from social_account
"""
_DUE = """
    update credential set refresh_time = $1, next_time = $1
    where (organization_id, social_account_id) in (
        select organization_id, social_account_id from credential order by 1, 2 limit $2
    )
"""
_REFRESHED = "select count(*) from credential where last_refresh_time >= $1"
_REFUSED = "select count(*) from credential where is_refused or failures > 0"


async def measure(accounts: int) -> list[Result]:
    key, log = base64.b64encode(secrets.token_bytes(32)).decode(), StatementLog()
    environment = {
        "POSTFLOW_PUBLISHER_CREDENTIALS_KEY": key,
        "POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE": "",
        "POSTFLOW_LOG_LEVEL": "WARNING",
    }
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with Stack(
            Path(folder),
            durable=True,
            services=["publisher"],
            environment=environment,
            postgres_options=OPTIONS,
            on_line=log.on_line,
        ) as stack:
            vault = Vault([("default", Secret(key))])
            wanted = seed.posts(accounts, "refresh")
            await Seeder(stack.database_urls, vault, SystemClock().now()).accounts(wanted)
            connection = await asyncpg.connect(stack.database_urls["publisher"])
            try:
                await _connect(connection, stack.sandbox, vault, wanted)
                return await _measure(connection, stack, log, accounts)
            finally:
                await connection.close()


async def _measure(connection: Any, stack: Stack, log: StatementLog, accounts: int) -> list[Result]:
    assert stack.postgres is not None
    await log.begin(stack.postgres)
    few = min(_COUNTED, accounts)
    await _run(connection, few)
    counted = await log.end(stack.postgres)
    for text, times in counted.texts.most_common(12):
        print(f"  {times / few:6.2f}  {text[:120]}", file=sys.stderr)
    pids = {"publisher": stack.pid("publisher"), "postgresql": stack.postgres.pid}
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    took = await _run(connection, accounts)
    spent = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    assert await connection.fetchval(_REFUSED) == 0, "a token was presented twice"
    return [
        Result(name=f"{accounts:,} due accounts: refreshes per second", value=accounts / took, unit="accounts"),
        Result(
            name="statements per refreshed account",
            value=counted.statements.total() / few,
            unit="round trips to PostgreSQL",
            target=6.5,
        ),
        *(
            Result(of="refresh", name=f"CPU per account: {name}", value=seconds / accounts * 1e6, unit="us")
            for name, seconds in spent.items()
        ),
    ]


async def _connect(connection: Any, sandbox: SandboxClient, vault: Vault, wanted: Sequence[seed.Post]) -> None:
    """Issues a pair of tokens for each account and stores it."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def issue(post: seed.Post) -> Mapping[str, Any]:
        async with places:
            return await sandbox.issue_token(post.account_id, seconds=_SECONDS, rotating=True)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(issue(post)) for post in wanted]
    rows = []
    for post, task in zip(wanted, tasks, strict=True):
        pair = task.result()
        credentials = Credentials(access_token=pair["access_token"], refresh_token=pair["refresh_token"])
        sealed = vault.seal(credentials, organization_id=post.organization_id, account_id=post.account_id)
        rows.append((post.organization_id, post.account_id, sealed))
    await connection.executemany(_STORE, rows)
    await connection.execute(_KNOW, SystemClock().now() + timedelta(seconds=_SECONDS))
    await connection.execute("vacuum analyze")


async def _run(connection: Any, accounts: int) -> float:
    """Makes so many accounts due; returns the seconds until all are refreshed."""
    due = await connection.fetchval("select clock_timestamp()")
    began = time.perf_counter()
    await connection.execute(_DUE, due, accounts)

    async def done() -> bool:
        await asyncio.sleep(0.05)
        return bool(await connection.fetchval(_REFRESHED, due) >= accounts)

    await eventually(done, within=_LIMIT)
    return time.perf_counter() - began
