"""The loops of a Queue process and their periods."""

import asyncio
from datetime import timedelta

from queue_service.application.catch_up import CatchUp
from queue_service.application.complete_holds import CompleteHolds
from queue_service.application.complete_take_backs import CompleteTakeBacks
from queue_service.application.count_slots import CountSlots
from queue_service.application.hand_over import HandOver
from queue_service.application.recover_commands import RecoverCommands
from queue_service.application.repair_connections import RepairConnections
from queue_service.application.reslot_late import ReslotLate
from queue_service.application.watch_overdue import WatchOverdue
from queue_service.application.watched_queues import WatchedQueues
from servicekit.run import Loop


def loops(
    *,
    hand_over: HandOver,
    catch_up: CatchUp,
    complete_holds: CompleteHolds,
    complete_take_backs: CompleteTakeBacks,
    recover_commands: RecoverCommands,
    repair_connections: RepairConnections,
    reslot_late: ReslotLate,
    watch_overdue: WatchOverdue,
    count_slots: CountSlots,
    watched_queues: WatchedQueues,
    wake: asyncio.Event,
    wake_repeat: asyncio.Event,
) -> list[Loop]:
    """Returns the loops. `wake` is set for new slots, which may be due now, `wake_repeat` for commands to repeat."""
    return [
        Loop("dispatch", hand_over.dispatch, timedelta(seconds=1), wake),
        Loop("repeat", hand_over.repeat, timedelta(seconds=1), wake_repeat),
        Loop("recover commands", recover_commands, timedelta(milliseconds=250)),
        Loop("catch up", catch_up, timedelta(seconds=1)),
        Loop("reslot late", reslot_late, timedelta(seconds=1)),
        Loop("miss held-up slots", hand_over.miss_held_up, timedelta(seconds=30)),
        Loop("repair connections", repair_connections, timedelta(minutes=1)),
        Loop("complete holds", complete_holds, timedelta(seconds=2)),
        Loop("complete take-backs", complete_take_backs, timedelta(seconds=15)),
        Loop("watch overdue", watch_overdue, timedelta(seconds=15)),
        Loop("count slots", count_slots, timedelta(seconds=15)),
        Loop("look at watched queues", watched_queues.look, timedelta(seconds=2)),
    ]
