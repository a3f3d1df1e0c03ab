"""Batches are split into transactions in which the items of an account stay together and in order."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.batch import CHUNK, Item, lines


def items(accounts: list[str]) -> list[Item]:
    return [Item(draft_id=str(number), social_account_id=account) for number, account in enumerate(accounts)]


@given(st.lists(st.sampled_from("abcde"), max_size=1000))
def test_every_item_is_in_one_chunk_after_those_of_its_account_before_it(accounts: list[str]) -> None:
    split = list(chain.from_iterable(lines(items(accounts))))
    places = list(chain.from_iterable(split))
    assert sorted(places) == list(range(len(accounts)))
    assert all(0 < len(chunk) <= CHUNK for chunk in split)
    for account in "abcde":
        mine = [place for place in places if accounts[place] == account]
        assert mine == sorted(mine)


@given(st.lists(st.sampled_from("abcde"), max_size=1000))
def test_no_account_is_in_two_lines(accounts: list[str]) -> None:
    in_lines = [{accounts[place] for place in chain.from_iterable(line)} for line in lines(items(accounts))]
    assert sum(map(len, in_lines)) == len(set(accounts))


def test_a_batch_takes_few_transactions() -> None:
    [line] = lines(items(["a"] * 1000))
    assert [len(chunk) for chunk in line] == [CHUNK] * (1000 // CHUNK)
    assert lines(items(["b", "a", "b"])) == [[[1, 0, 2]]]
    half = ["a", "b", "c"] * (CHUNK // 2)
    assert [[len(chunk) for chunk in line] for line in lines(items(half))] == [[CHUNK], [CHUNK // 2]]
