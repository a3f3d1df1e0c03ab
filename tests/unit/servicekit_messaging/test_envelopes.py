from hypothesis import given
from hypothesis import strategies as st

from postflow.bus.v1 import bus_pb2
from servicekit.messaging.envelopes import envelopes, outgoing
from servicekit.pg.outbox import OutboxRow


def _row(position: int, subject: str = "events.a", size: int = 10) -> OutboxRow:
    event = bus_pb2.Event(id=f"e{position}", payload=b"x" * size)
    return OutboxRow(position, event.id, subject, bus_pb2.Envelope(events=[event]).SerializeToString())


def _events(envelope: list[OutboxRow]) -> list[str]:
    return [event.id for event in bus_pb2.Envelope.FromString(outgoing(envelope).payload).events]


def test_an_envelope_holds_at_most_fifty_events() -> None:
    assert [len(pack) for pack in envelopes(_row(position) for position in range(120))] == [50, 50, 20]


def test_an_envelope_stays_small_except_for_one_large_event() -> None:
    rows = [_row(1, size=200_000), _row(2, size=100_000), _row(3, size=400_000), _row(4)]
    assert [_events(pack) for pack in envelopes(rows)] == [["e1"], ["e2"], ["e3"], ["e4"]]


@given(st.lists(st.sampled_from(["events.a", "events.b", "events.c"]), max_size=200))
def test_every_event_is_packed_once_and_in_the_order_of_its_subject(subjects: list[str]) -> None:
    rows = [_row(position, subject) for position, subject in enumerate(subjects)]
    packed: dict[str, list[str]] = {}
    for pack in envelopes(rows):
        assert len({row.subject for row in pack}) == 1
        packed.setdefault(pack[0].subject, []).extend(_events(pack))
    for subject in set(subjects):
        assert packed[subject] == [row.event_id for row in rows if row.subject == subject]


def test_the_message_id_names_all_events_and_not_just_the_first() -> None:
    """Otherwise the stream would drop a longer pack as a duplicate of a shorter one, and lose events."""
    rows = [_row(position) for position in range(3)]
    ids = {outgoing(rows[:1]).message_id, outgoing(rows[:2]).message_id, outgoing(rows).message_id}
    assert len(ids) == 3
    assert outgoing(rows).message_id == outgoing(rows).message_id
