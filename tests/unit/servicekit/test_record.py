"""A record is a value: equal by its fields, hashable, and copied with changes."""

from dataclasses import fields, replace

from publisher_service.domain.post_job import PostJob
from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class Pair:
    first: int
    second: str = ""


def test_a_record_is_equal_by_its_fields_and_hashable() -> None:
    assert Pair(first=1) == Pair(first=1, second="")
    assert {Pair(first=1), Pair(first=1), Pair(first=2)} == {Pair(first=1), Pair(first=2)}


def test_a_changed_copy_leaves_the_record_as_it_is() -> None:
    one = Pair(first=1, second="a")
    assert replace(one, first=2) == Pair(first=2, second="a")
    assert one == Pair(first=1, second="a")


def test_a_record_has_no_other_attributes() -> None:
    assert not hasattr(Pair(first=1), "__dict__")
    assert PostJob.__slots__ == tuple(field.name for field in fields(PostJob))
