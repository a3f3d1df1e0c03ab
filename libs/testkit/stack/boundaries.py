"""Publisher's failpoints, and for each the work that leads one process, the victim, through it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from testkit.stack import renewals, restores, works
from testkit.stack.scene import Scene

Work = Callable[[Scene, int], Awaitable[None]]
"""A round of work, with its number."""
Step = Callable[[Scene], Awaitable[None]]


async def _nothing(scene: Scene) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """`prepare` runs before the victim starts, rounds of `work` until it has passed the failpoint, then `finish`.

    `armed` are further failpoints of the victim, `settings` further variables of its environment. `call`: an exception
    there is the answer to a call, and the process lives on. `fresh`: only a process that has just been started comes to
    it soon.
    """

    work: Work
    prepare: Step = _nothing
    finish: Step = _nothing
    armed: str = ""
    call: bool = False
    fresh: bool = False
    rounds: int = 8
    settings: Mapping[str, str] = field(default_factory=dict)


BOUNDARIES: Mapping[str, Boundary] = {
    "consumer.applied": Boundary(work=works.posts),
    "publisher.intake.taken": Boundary(work=works.posts),
    "publisher.intake.parked": Boundary(work=works.garbling, finish=works.parked),
    "publisher.claim.before_commit": Boundary(work=works.posts),
    "publisher.claim.committed": Boundary(work=works.posts),
    "publisher.claim.made_jobs": Boundary(work=works.overtaking, finish=works.late_events),
    "publisher.disown.committed": Boundary(work=works.posts, armed="publisher.claim.before_commit=drop:0.5"),
    "publisher.send.claimed": Boundary(work=works.posts),
    "publisher.send.looked": Boundary(work=works.posts),
    "publisher.request.written": Boundary(work=works.posts),
    "publisher.send.answered": Boundary(work=works.posts),
    "publisher.announce.committed": Boundary(work=works.hanging),
    "publisher.settle.late_answer": Boundary(work=works.posts, armed="publisher.send.answered=sleep:4:once"),
    "publisher.settle.before_commit": Boundary(work=works.posts),
    "publisher.settle.committed": Boundary(work=works.posts),
    "publisher.settle.acked": Boundary(work=works.posts),
    "relay.published": Boundary(work=works.posts),
    "publisher.recover.swept": Boundary(work=works.doubtful),
    "publisher.recover.committed": Boundary(work=works.doubtful),
    "publisher.look.begun": Boundary(work=works.doubtful),
    "publisher.look.looked": Boundary(work=works.doubtful),
    "publisher.look.recorded": Boundary(work=works.doubtful),
    "publisher.hold.committed": Boundary(work=works.holding, finish=works.held, call=True),
    "publisher.release.committed": Boundary(work=works.releasing, finish=works.released, call=True),
    "publisher.relabel.committed": Boundary(work=works.releasing, finish=works.released),
    "publisher.cancel.committed": Boundary(work=works.canceling, finish=works.canceled, call=True),
    "publisher.withdraw.committed": Boundary(work=works.withdrawing, finish=works.withdrawn, call=True),
    "publisher.resolve.committed": Boundary(work=works.resolving, finish=works.resolved, call=True),
    "publisher.retry.committed": Boundary(work=works.retrying, finish=works.retried, call=True),
    "publisher.publish_now.before_commit": Boundary(work=works.posting_now, finish=works.posted_now, call=True),
    "publisher.publish_now.committed": Boundary(work=works.posting_now, finish=works.posted_now, call=True),
    "publisher.replay.announced": Boundary(work=works.replaying, call=True),
    "publisher.end_holds.committed": Boundary(work=works.ending_holds, finish=works.freed),
    "publisher.freeing.committed": Boundary(work=works.freeing, finish=works.freed),
    "publisher.update_destination.committed": Boundary(work=works.switching, finish=works.switched, call=True),
    "publisher.release_destinations.committed": Boundary(work=works.switching, finish=works.switched),
    "publisher.resume.committed": Boundary(work=works.away),
    "publisher.update_account.committed": Boundary(work=works.naming, call=True),
    "publisher.prepare.taken": Boundary(work=works.posts),
    "publisher.prepare.answered": Boundary(work=works.posts),
    "publisher.prepare.recorded": Boundary(work=works.posts),
    "publisher.prepare.asked_ahead": Boundary(work=works.posts),
    "publisher.follow_ups.committed": Boundary(work=works.commented),
    "publisher.marks.committed": Boundary(work=works.idle),
    "publisher.disconnect.committed": Boundary(work=works.disconnecting, finish=works.disconnected, call=True),
    "publisher.parked.committed": Boundary(work=works.unparking, prepare=works.park, finish=works.unparked),
    "publisher.drop_old_rows.committed": Boundary(work=works.idle, prepare=works.age, fresh=True, rounds=2),
    "publisher.connect.verified": Boundary(work=works.connecting, finish=works.connected, call=True),
    "publisher.connect.committed": Boundary(work=works.connecting, finish=works.connected, call=True),
    "publisher.refresh.taken": Boundary(work=renewals.refreshing, finish=renewals.refreshed),
    "publisher.refresh.answered": Boundary(work=renewals.refreshing, finish=renewals.refreshed),
    "publisher.refresh.recorded": Boundary(work=renewals.refreshing, finish=renewals.refreshed),
    "publisher.refresh_credentials.asked": Boundary(work=renewals.asking, finish=renewals.refreshed, call=True),
    "publisher.refresh_credentials.committed": Boundary(work=renewals.asking, finish=renewals.refreshed, call=True),
    "publisher.start_connect.committed": Boundary(work=renewals.starting, finish=renewals.visited, call=True),
    "publisher.finish_connect.begun": Boundary(work=renewals.visiting, finish=renewals.visited, call=True),
    "publisher.finish_connect.granted": Boundary(work=renewals.visiting, finish=renewals.visited, call=True),
    "publisher.finish_connect.committed": Boundary(work=renewals.visiting, finish=renewals.visited, call=True),
    "publisher.wake_stranded.committed": Boundary(work=works.idle, prepare=works.strand, fresh=True, rounds=2),
    "publisher.drop_kept.committed": Boundary(work=works.idle, prepare=works.doubt, fresh=True, rounds=2),
    "publisher.claim.stopped": Boundary(work=restores.ahead, finish=restores.left),
    "publisher.reconcile.replayed": Boundary(work=restores.restored, finish=restores.left),
    "publisher.reconcile.events": Boundary(work=restores.restored, finish=restores.left),
    "publisher.reconcile.jobs": Boundary(work=restores.restored, finish=restores.left),
    "publisher.reconcile.versions": Boundary(work=restores.restored, finish=restores.left),
    "publisher.leave_safe_mode.committed": Boundary(work=restores.leaving, finish=restores.left, call=True),
    "publisher.change_notifications.committed": Boundary(work=works.notifying, finish=works.notified, call=True),
    "publisher.notify.taken": Boundary(work=works.notifying, finish=works.notified),
    "publisher.notify.sent": Boundary(work=works.notifying, finish=works.notified),
    "publisher.notify.recorded": Boundary(work=works.notifying, finish=works.notified),
    "publisher.reseal.committed": Boundary(
        work=works.idle, fresh=True, settings={"POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE": "credentials.rotated"}
    ),
}
"""A test checks that every failpoint that Publisher declares is here."""
