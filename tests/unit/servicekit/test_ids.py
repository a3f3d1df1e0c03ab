import uuid
from collections import Counter
from itertools import pairwise

from servicekit.clock import wall_nanoseconds
from servicekit.ids import Uuid7Source

MANY = 10_000


def test_an_id_is_a_uuid_of_version_7() -> None:
    source = Uuid7Source()
    for text in (source.new() for _ in range(MANY)):
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 7, uuid.RFC_4122)


def test_an_id_begins_with_its_time_in_milliseconds() -> None:
    before = wall_nanoseconds() // 1_000_000
    time = uuid.UUID(Uuid7Source().new()).int >> 80
    assert before <= time <= wall_nanoseconds() // 1_000_000


def test_ids_of_a_process_strictly_grow() -> None:
    source = Uuid7Source()
    made = [source.new() for _ in range(MANY)]
    assert all(first < second for first, second in pairwise(made))


def test_all_62_bits_of_a_tail_are_random() -> None:
    """Ids that two processes make in the same millisecond differ by these alone."""
    source = Uuid7Source()
    tails = [uuid.UUID(source.new()).int & (1 << 62) - 1 for _ in range(MANY)]
    ones = Counter(bit for tail in tails for bit in range(62) if tail >> bit & 1)
    assert len(set(tails)) == MANY
    assert all(0.4 * MANY < ones[bit] < 0.6 * MANY for bit in range(62))
