"""Turns of organizations and accounts."""

from publisher_service.engine.turn_queue import TurnQueue


def test_turns_go_round_organizations_and_then_accounts() -> None:
    queue = TurnQueue[tuple[str, str, int]](lambda item: item[:2])
    for item in (("big", "one", 0), ("big", "one", 1), ("big", "one", 2), ("big", "two", 0), ("small", "page", 0)):
        queue.add(item)
    assert queue.take(4) == [("big", "one", 0), ("small", "page", 0), ("big", "two", 0), ("big", "one", 1)]
    assert queue.take_all() == [("big", "one", 2)]
    assert not queue
