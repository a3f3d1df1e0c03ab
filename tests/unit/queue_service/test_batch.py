"""Batches are split into transactions in which the items of an account stay together and in order."""

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.batch import CHUNK, Item, chunks


def items(accounts: list[str]) -> list[Item]:
    return [Item(draft_id=str(number), social_account_id=account) for number, account in enumerate(accounts)]


@given(st.lists(st.sampled_from("abc"), max_size=1000))
def test_every_item_is_in_one_chunk_after_those_of_its_account_before_it(accounts: list[str]) -> None:
    split = chunks(items(accounts))
    places = [place for chunk in split for place in chunk]
    assert sorted(places) == list(range(len(accounts)))
    assert all(0 < len(chunk) <= CHUNK for chunk in split)
    for account in "abc":
        mine = [place for place in places if accounts[place] == account]
        assert mine == sorted(mine)


def test_a_batch_for_one_account_takes_as_few_transactions_as_possible() -> None:
    assert [len(chunk) for chunk in chunks(items(["a"] * 1000))] == [CHUNK] * (1000 // CHUNK)
    assert chunks(items(["b", "a", "b"])) == [[1, 0, 2]]
