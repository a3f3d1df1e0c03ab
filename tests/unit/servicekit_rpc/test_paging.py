import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicekit.faults import InvalidField
from servicekit.rpc.paging import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, next_page_token, read_page
from testkit.tiny import EchoRequest, Note, OtherRequest

CURSOR = ("2026-03-02T09:00:00Z", 7, "an id")


def listing(**fields: Any) -> Any:
    return EchoRequest(**({"organization_id": "acme", "text": "filter"} | fields))


def refused_field(request: Any) -> str:
    with pytest.raises(InvalidField) as caught:
        read_page(request)
    return caught.value.metadata["field"]


@pytest.mark.parametrize(("asked", "given"), [(0, DEFAULT_PAGE_SIZE), (1, 1), (MAX_PAGE_SIZE, 200)])
def test_a_page_has_a_size_within_bounds(asked: int, given: int) -> None:
    assert read_page(listing(page_size=asked)).size == given


@pytest.mark.parametrize("asked", [-1, MAX_PAGE_SIZE + 1, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused(asked: int) -> None:
    assert refused_field(listing(page_size=asked)) == "page_size"


def test_the_first_page_begins_at_the_beginning() -> None:
    assert read_page(listing()).after is None


def test_the_next_page_begins_after_the_last_row_for_any_size() -> None:
    token = next_page_token(listing(page_size=2), CURSOR)
    assert read_page(listing(page_size=9, page_token=token)).after == CURSOR


@pytest.mark.parametrize(
    "other", [{"organization_id": "other"}, {"text": "another filter"}, {"note": Note(title="x")}], ids=str
)
def test_a_token_is_valid_for_its_own_request_only(other: dict[str, Any]) -> None:
    token = next_page_token(listing(), CURSOR)
    assert refused_field(listing(**other, page_token=token)) == "page_token"


def test_a_token_is_valid_for_its_own_method_only() -> None:
    other = OtherRequest(organization_id="acme", text="filter")
    assert refused_field(listing(page_token=next_page_token(other, CURSOR))) == "page_token"


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_other_text_is_refused(text: str) -> None:
    assert refused_field(listing(page_token=text)) == "page_token"


@given(st.data())
def test_a_token_with_a_changed_byte_is_refused(data: st.DataObject) -> None:
    token = next_page_token(listing(), CURSOR)
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    changed = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert refused_field(listing(page_token=changed)) == "page_token"


@given(st.lists(st.text(st.characters(codec="utf-8")) | st.integers(-(2**63), 2**63)).map(tuple))
def test_any_position_comes_back_as_it_was(cursor: tuple[str | int, ...]) -> None:
    assert read_page(listing(page_token=next_page_token(listing(), cursor))).after == cursor
