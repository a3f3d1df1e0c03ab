"""Work that leads a publisher through its failpoints, and what must be so in the end."""

import asyncio
from contextlib import suppress
from datetime import timedelta

from postflow.publisher.v1.destination_pb2 import DESTINATION_STATE_ACTIVE, DESTINATION_STATE_INACTIVE
from servicekit.clock import SystemClock
from testkit.eventually import eventually, holds
from testkit.stack.orders import CHAT, CLASSES
from testkit.stack.scene import ALONE, Scene

_AWAY = 1.5
_HELD = 0.75
_SLOW = 1.3
"""Seconds: shorter than a request may last."""
_ALONE = 2.5
"""Seconds that the other process is stopped at most: shorter than its lease."""


async def posts(scene: Scene, number: int) -> None:
    await scene.orders.post_on_each(scene.other, f"d{number}", *CLASSES)


async def commented(scene: Scene, number: int) -> None:
    """Posts with two comments each, which the victim begins if the other process is stopped."""
    await scene.orders.post_on_each(scene.other, f"d{number}", *CLASSES, comments=2)
    async with scene.alone():
        await scene.until_hit(within=_ALONE)


async def doubtful(scene: Scene, number: int) -> None:
    """Posts whose answers are lost."""
    await scene.orders.faults("effect_then_reset", *CLASSES)
    await posts(scene, number)


async def hanging(scene: Scene, number: int) -> None:
    """Posts that are open until their request ends without an answer: they are announced."""
    await scene.orders.faults("effect_then_hang", *CLASSES)
    await posts(scene, number)


async def retrying(scene: Scene, number: int) -> None:
    orders, draft = scene.orders, f"d{number}"
    await orders.faults("status", "keyed", status=422, count=1)
    await orders.post(scene.other, draft, "keyed")
    await orders.until(scene.other, draft, "FAILED")
    await scene.ask(lambda caller: orders.retry(caller, draft))


async def retried(scene: Scene) -> None:
    for draft in list(scene.orders.slots):
        await scene.orders.retry(scene.other, draft)


async def posting_now(scene: Scene, number: int) -> None:
    await scene.ask(lambda caller: scene.orders.publish_now(caller, f"now{number}", "keyed"))


async def posted_now(scene: Scene) -> None:
    """The call is repeated, and the event of the draft comes."""
    await scene.orders.publish_now(scene.other, "now0", "keyed")
    await scene.orders.write("now0", "keyed")
    await scene.orders.until(scene.other, "now0", "PUBLISHED")


async def replaying(scene: Scene, number: int) -> None:
    await posts(scene, number)
    await scene.ask(scene.orders.replay)


async def notifying(scene: Scene, number: int) -> None:
    """A mail that the victim sends: it hears of it first."""
    await scene.ask(lambda caller: scene.orders.notify(caller, f"p{number}"))


async def notified(scene: Scene) -> None:
    """The call is repeated, and each mail is delivered once."""
    await scene.orders.notify(scene.other, "p0")
    emails = await scene.orders.delivered(scene.other)
    assert len(emails) == len(set(emails)), emails


async def ending_holds(scene: Scene, number: int) -> None:
    """Holds that end by themselves, as the victim sees first."""
    end = SystemClock().now() + timedelta(seconds=_HELD)
    await scene.orders.hold_all(scene.other, revision=2 * number + 1, end_time=end)
    await scene.orders.post_on_each(scene.other, f"d{number}", *CLASSES)
    async with scene.alone():
        await scene.until_hit(within=_ALONE)


async def freeing(scene: Scene, number: int) -> None:
    """Everything of the organization is held, and released by the victim."""
    orders = scene.orders
    await orders.hold_all(scene.other, revision=2 * number + 1)
    await orders.post_on_each(scene.other, f"d{number}", *CLASSES)
    for account in CLASSES:
        await orders.until(scene.other, f"d{number}-{account}", "BLOCKED")
    await scene.ask(lambda caller: orders.release(caller, "all", revision=2 * number + 2))


async def freed(scene: Scene) -> None:
    await scene.orders.hold_all(scene.other, revision=99)
    await scene.orders.release(scene.other, "all", revision=100)


async def switching(scene: Scene, number: int) -> None:
    """A post waits for its destination, which the victim activates."""
    orders, account, draft = scene.orders, f"keyed-{CHAT}", f"d{number}"
    await orders.connect(scene.other, account)
    await orders.switch(scene.other, account, DESTINATION_STATE_INACTIVE)
    await orders.post(scene.other, draft, account)
    await orders.until(scene.other, draft, "BLOCKED")
    await scene.ask(lambda caller: orders.switch(caller, account, DESTINATION_STATE_ACTIVE))


async def switched(scene: Scene) -> None:
    await scene.orders.switch(scene.other, f"keyed-{CHAT}", DESTINATION_STATE_ACTIVE)


async def disconnecting(scene: Scene, number: int) -> None:
    await scene.ask(lambda caller: scene.orders.disconnect(caller, "keyed", f"d{number}"))


async def disconnected(scene: Scene) -> None:
    """Nothing goes out between the answer and the next connection."""
    orders = scene.orders
    await orders.disconnect(scene.other, "keyed", "last")
    await orders.post(scene.other, "gone", "keyed")
    await orders.until(scene.other, "gone", "BLOCKED")
    await orders.connect(scene.other, "keyed", again="again")


async def park(scene: Scene) -> None:
    """E-mails of one account: the second waits until its spacing is over, which is brought forward here."""
    orders = scene.orders
    await orders.connect(scene.other, "keyed-mail")
    for place in range(4):
        await orders.post(scene.other, f"d{place}", "keyed-mail")
    await orders.until(scene.other, "d3", "WAITING")


async def unparking(scene: Scene, number: int) -> None:
    """The line is due, as the victim sees first."""
    async with scene.alone():
        await _bring_forward(scene)
        await scene.until_hit(within=ALONE)


async def _bring_forward(scene: Scene) -> None:
    await scene.change(
        "update account_gate set last_outreach_time = last_outreach_time - interval '1 hour' where organization_id = $1"
    )
    await scene.change("update parked_line set wake_time = wake_time - interval '1 hour' where organization_id = $1")


async def unparked(scene: Scene) -> None:
    async def all_are_out() -> bool:
        await _bring_forward(scene)
        return len(scene.orders.effects("keyed-mail")) == 4

    await eventually(all_are_out, within=60)


async def age(scene: Scene) -> None:
    """Reservations that are older than any local day, and a preparation of a post that has long been published."""
    await posts(scene, 0)
    await eventually(lambda: len(scene.orders.effects()) == len(CLASSES), within=30)
    await scene.change(
        "insert into reservation (organization_id, post_job_id, fence, run, social_account_id, action, reserve_time)"
        " values ($1, 'long ago', 1, 1, 'keyed', 'POST', now() - interval '9 days')"
    )
    await scene.orders.until(scene.other, "d0-keyed", "PUBLISHED")
    await scene.change(
        "insert into preparation (organization_id, post_job_id, social_account_id, provider, state)"
        " select organization_id, id, social_account_id, 'sandbox', 'PENDING' from post_job"
        " where organization_id = $1 and social_account_id = 'keyed' and state = 'PUBLISHED'"
    )


async def garbling(scene: Scene, number: int) -> None:
    """A command that nobody can read."""
    await scene.orders.garbage("keyed", number)


async def parked(scene: Scene) -> None:
    """Waits until the command is parked; the process did not stop at it."""

    async def found() -> bool:
        letters = await scene.change("select from dead_letter where position(convert_to($1, 'UTF8') in payload) > 0")
        return letters != "SELECT 0"

    await eventually(found, within=30)
    await posts(scene, 0)


async def idle(scene: Scene, number: int) -> None:
    """Waits for a loop of the victim."""


async def overtaking(scene: Scene, number: int) -> None:
    """Commands whose events are lost, or come later."""
    for account in CLASSES:
        await scene.orders.command(f"early{number}-{account}", account, emission=2)


async def late_events(scene: Scene) -> None:
    for draft in list(scene.orders.slots):
        await scene.orders.write(draft, draft.partition("-")[2])


async def resolving(scene: Scene, number: int) -> None:
    orders, draft = scene.orders, f"d{number}"
    await orders.faults("effect_then_reset", "blind")
    await orders.post(scene.other, draft, "blind")
    await orders.until(scene.other, draft, "UNKNOWN")
    await scene.ask(lambda caller: orders.resolve(caller, draft, "blind"))


async def resolved(scene: Scene) -> None:
    for draft in list(scene.orders.slots):
        await scene.orders.resolve(scene.other, draft, "blind")
        await scene.orders.until(scene.other, draft, "PUBLISHED")


async def holding(scene: Scene, number: int) -> None:
    await scene.ask(lambda caller: scene.orders.hold(caller, "keyed", revision=2 * number + 1))


async def held(scene: Scene) -> None:
    """Nothing goes out between the answer and the release."""
    orders = scene.orders
    await orders.hold(scene.other, "keyed", revision=99)
    await orders.post(scene.other, "held", "keyed")
    await orders.until(scene.other, "held", "BLOCKED")

    async def nothing_is_out() -> bool:
        return not orders.effects("keyed")

    await holds(nothing_is_out, during=0.5)
    await orders.release(scene.other, "keyed", revision=100)


async def releasing(scene: Scene, number: int) -> None:
    """A line of three posts is held, and released by the victim."""
    orders = scene.orders
    await orders.hold(scene.other, "keyed", revision=2 * number + 1)
    drafts = [f"d{number}-{place}" for place in range(3)]
    for draft in drafts:
        await orders.post(scene.other, draft, "keyed")
    for draft in drafts:
        await orders.until(scene.other, draft, "BLOCKED")
    await scene.ask(lambda caller: orders.release(caller, "keyed", revision=2 * number + 2))


async def released(scene: Scene) -> None:
    await scene.orders.release(scene.other, "keyed", revision=100)


async def canceling(scene: Scene, number: int) -> None:
    orders, draft = scene.orders, f"d{number}"
    orders.forbidden.add(await orders.write(draft, "keyed"))
    await orders.schedule(draft, "keyed", ahead=600.0)
    await orders.until(scene.other, draft, "SCHEDULED")
    await scene.ask(lambda caller: orders.cancel(caller, draft, "keyed"))


async def canceled(scene: Scene) -> None:
    """The command comes nevertheless."""
    for draft in list(scene.orders.slots):
        await scene.orders.cancel(scene.other, draft, "keyed")
        await scene.orders.command(draft, "keyed")


async def withdrawing(scene: Scene, number: int) -> None:
    orders, draft = scene.orders, f"d{number}"
    orders.forbidden.add(await orders.write(draft, "keyed"))
    await orders.schedule(draft, "keyed")
    await orders.until(scene.other, draft, "SCHEDULED")
    await scene.ask(lambda caller: orders.withdraw(caller, draft, below=2))


async def withdrawn(scene: Scene) -> None:
    """The command comes nevertheless; then the next revision, which goes out."""
    orders = scene.orders
    for draft in list(orders.slots):
        await orders.withdraw(scene.other, draft, below=2)
        await orders.command(draft, "keyed")
        await orders.until(scene.other, draft, "BLOCKED")
        await orders.write(draft, "keyed", revision=2)


async def connecting(scene: Scene, number: int) -> None:
    await scene.ask(lambda caller: scene.orders.connect(caller, f"keyed-{number}"))


async def connected(scene: Scene) -> None:
    await scene.orders.connect(scene.other, "keyed-0")
    await scene.orders.post(scene.other, "d", "keyed-0")


async def strand(scene: Scene) -> None:
    """Posts wait behind one that is out, and the gate does not show it."""
    orders = scene.orders
    await orders.faults("slow", "keyed", seconds=_SLOW)
    for place in range(3):
        await orders.post(scene.other, f"d{place}", "keyed")

    async def strands() -> bool:
        done = await scene.change("update account_gate set lined = false where lined and organization_id = $1")
        return done == "UPDATE 1"

    await eventually(strands, within=20)
    await orders.until(scene.other, "d0", "PUBLISHED")


async def doubt(scene: Scene) -> None:
    """Posts whose answers were lost are looked up: their bytes are kept for no longer."""
    with suppress(AssertionError):  # a sweep of the other process may be slow
        await doubtful(scene, 0)
        for account in CLASSES[:2]:
            await scene.orders.until(scene.other, f"d0-{account}", "PUBLISHED")


async def away(scene: Scene, number: int) -> None:
    """The provider is down for a while, and answers again, as the victim sees first."""
    await scene.stack.kill("sandbox")
    try:
        await posts(scene, number)
        await asyncio.sleep(_AWAY)
    finally:
        await scene.stack.start("sandbox")
        for account in CLASSES:
            await scene.orders.play(account)
    async with scene.alone():
        await scene.until_hit(within=_ALONE)


async def naming(scene: Scene, number: int) -> None:
    await scene.ask(lambda caller: scene.orders.name(caller, "keyed", f"name-{number}"))
