"""An id is computed from its parts: the same for the same, and another for any others."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.derived_ids import derived_id

parts = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9), max_size=4)


@given(parts, parts)
def test_equal_parts_alone_have_equal_ids(some: list[str], others: list[str]) -> None:
    # No part and one empty part are joined alike; nothing is made of no parts.
    assert (derived_id("a", *some) == derived_id("a", *others)) == (some == others)


@given(parts)
def test_an_id_is_a_uuid_of_version_8(some: list[str]) -> None:
    made = uuid.UUID(derived_id(*some))
    assert (made.version, made.variant) == (8, uuid.RFC_4122)
