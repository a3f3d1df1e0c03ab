from benchmarks.bare_slots import groups
from benchmarks.queue_calls import Slot


def test_a_transaction_has_slots_of_one_organization() -> None:
    slots = [Slot("a", "1"), Slot("b", "2"), Slot("a", "3"), Slot("a", "4")]
    assert groups(slots, 2) == [("a", ["1", "3"]), ("a", ["4"]), ("b", ["2"])]
    assert groups(slots, 1) == [("a", ["1"]), ("a", ["3"]), ("a", ["4"]), ("b", ["2"])]
