"""Work that leads a publisher through the life of credentials: refreshes, and visits that connect accounts."""

from collections import Counter
from collections.abc import Mapping

import grpc

from servicekit.rpc.status import fault_from_error
from testkit.eventually import eventually
from testkit.stack.orders import Caller
from testkit.stack.scene import ALONE, VICTIM, Scene

_ACCOUNTS = 4
_GRACE = 60.0
"""Seconds: longer than a lease, so that a refresh token whose answer was lost gets that answer again."""


async def refreshing(scene: Scene, number: int) -> None:
    """Rotating tokens of some accounts are due, as the victim sees first."""
    names = [f"keyed-{number}-{place}" for place in range(_ACCOUNTS)]
    for name in names:
        await scene.orders.connect_rotating(scene.other, name, grace=_GRACE)
    async with scene.alone():
        await _make_due(scene)
        await scene.until_hit(within=ALONE)


async def refreshed(scene: Scene) -> None:
    """Every account has been refreshed, still works, and no token was presented twice but where a process was lost."""
    orders = scene.orders
    names = orders.rotating
    posts = {name: f"d-{name}" for name in names}
    if not scene.stack.running(VICTIM):
        # A dead process comes back to nothing: what it has taken need not wait for the end of its lease.
        await scene.change(
            "update credential set next_time = now(), lease_end = null"
            " where organization_id = $1 and lease_end is not null and refresh_time <= now()"
        )

    async def has_been(name: str) -> bool:
        return (await orders.generation(scene.other, name)) > 1

    for name in names:
        await eventually(lambda name=name: has_been(name), within=30)  # type: ignore[misc]
        await orders.post(scene.other, posts[name], name)
        await orders.until(scene.other, posts[name], "PUBLISHED")
    lost = Counter({row["social_account_id"]: row["lost"] for row in await scene.rows(_LOST)})
    for name in names:
        presented = Counter(line["idempotency_key"] for line in _of(orders.tokens(), orders.external(name)))
        assert max(presented.values()) <= 1 + lost[name], f"{name}: {presented}, {lost[name]} of them lost"


async def asking(scene: Scene, number: int) -> None:
    """A caller of the victim asks for a refresh."""
    name = f"keyed-asked-{number}"
    await scene.orders.connect_rotating(scene.other, name, grace=_GRACE)
    await scene.ask(lambda caller: scene.orders.refresh(caller, name))


async def starting(scene: Scene, number: int) -> None:
    await scene.ask(lambda caller: scene.orders.visit(caller, f"keyed-visit-{number}"))


async def visiting(scene: Scene, number: int) -> None:
    """A person comes back to the victim."""
    name = f"keyed-visit-{number}"
    await scene.orders.visit(scene.other, name)
    await scene.ask(lambda caller: _come_back(scene, caller, name))


async def _come_back(scene: Scene, caller: Caller, name: str) -> None:
    """Allows for a victim that has stood still until the visit was over: the person has called again meanwhile."""
    try:
        await scene.orders.come_back(caller, name)
    except grpc.aio.AioRpcError as error:
        if not scene.hit.is_set() or fault_from_error(error).reason != "STATE_USED":
            raise


async def visited(scene: Scene) -> None:
    """The person comes back again if the visit was interrupted; no code was ever presented twice."""
    orders = scene.orders
    for name in ("keyed-visit-0", "keyed-visit-last"):
        await orders.connect_by_visit(scene.other, name)
        await orders.post(scene.other, f"d-{name}", name)
    codes = Counter(line["idempotency_key"] for line in orders.tokens() if str(line["idempotency_key"])[:1] == "s")
    assert all(times == 1 for times in codes.values()), codes


_LOST = """
    select social_account_id, count(*) as lost from credential_refresh
    where organization_id = $1 and state in ('INTENT', 'FAILED') group by social_account_id
"""


async def _make_due(scene: Scene) -> None:
    await scene.change(
        "update credential set refresh_time = now(), next_time = now() where organization_id = $1 and is_refreshable"
    )


def _of(lines: list[Mapping[str, object]], external: str) -> list[Mapping[str, object]]:
    return [line for line in lines if line["account"] == external]
