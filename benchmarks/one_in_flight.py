"""Checks by the provider's ledger that no account ever had two requests in flight."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from benchmarks import seed
from benchmarks.lines import command, of_account
from benchmarks.result import Result
from benchmarks.sites import Site
from servicekit.clock import SystemClock
from testkit.eventually import eventually

_ACCOUNTS = 1000
_POSTS = 10
"""Posts of each account."""
_PER_SECOND = 2000
_LIMIT = 120.0
_ANSWER = 0.01
"""Seconds until the provider answers: long enough for a second request to be seen."""


async def measure(site: Site) -> list[Result]:
    """Makes posts of many accounts due at once, then looks at all requests that the provider has had."""
    accounts = seed.posts(_ACCOUNTS, "busy")
    await site.seeder.accounts(accounts)
    wanted = [post for account in accounts for post in _posts(account)]
    due = SystemClock().now()
    await site.seeder.jobs(wanted, due)
    await site.stack.sandbox.faults({"fault": "slow", "seconds": _ANSWER})
    await command(site.stack, wanted, due)
    requests = await eventually(lambda: _requests(site, len(wanted)), within=_LIMIT)
    found = overlapping(requests)
    assert not found, f"{len(found)} accounts had two requests in flight: {found[:5]}"
    checked = len({each["account"] for each in requests})
    return [
        Result(name=f"accounts of {checked:,} with two requests in flight", value=len(found), unit="", target=0),
        Result(
            name=f"posts of {_ACCOUNTS:,} accounts in line",
            value=len(wanted) / _seconds(requests),
            unit="/s",
            note=f"at least {_PER_SECOND:,} are wanted",
        ),
    ]


def _posts(account: seed.Post) -> list[seed.Post]:
    return of_account(seed.posts(_POSTS, account.account_id), account.organization_id, account.account_id)


def _requests(site: Site, wanted: int) -> list[dict[str, Any]]:
    """Returns all requests of the run once those of the busy accounts are among them."""
    requests = [entry for entry in site.stack.sandbox.ledger() if entry["kind"] == "request"]
    busy = sum(entry["outcome"] == "created" and entry["account"].startswith("busy-") for entry in requests)
    return requests if busy == wanted else []


def _seconds(requests: Iterable[Mapping[str, Any]]) -> float:
    """Returns the time from the first request of the busy accounts to their last."""
    times = [datetime.fromisoformat(each["time"]) for each in requests if each["account"].startswith("busy-")]
    return (max(times) - min(times)).total_seconds()


def overlapping(requests: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the accounts of which a request came before the one before it was decided."""
    by_account: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for request in requests:
        if request["operation"] == "post":
            by_account[request["account"]].append((request["arrival"], request["time"]))
    return [
        account
        for account, spans in by_account.items()
        if any(arrival < decided for (_, decided), (arrival, _) in pairwise(sorted(spans)))
    ]
