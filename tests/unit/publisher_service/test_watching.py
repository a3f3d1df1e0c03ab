"""Watching post jobs: which are watched, and how far a watcher has come."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.post_job import ENDED_RUN, JobState
from publisher_service.domain.watching import NOT_ENDED, Mark, Pending, Watched, changes
from tests.unit.publisher_service.post_jobs import NOW, PAGE, sending

MARK = Mark(create_time=NOW, sequence=7, is_caught_up=True)


def test_every_state_has_ended_or_is_sent_first() -> None:
    assert set(NOT_ENDED) | ENDED_RUN | {JobState.PUBLISHED} == set(JobState)
    assert JobState.NEEDS_ATTENTION in NOT_ENDED


def test_a_job_is_heard_of_under_the_key_of_each_who_takes_it() -> None:
    job = sending()
    everything = Watched(organization_id="acme")
    of_draft = Watched(organization_id="acme", draft_id="draft")
    of_account = Watched(organization_id="acme", social_account_id="page")
    of_both = Watched(organization_id="acme", draft_id="draft", social_account_id="page")
    assert all(each.takes(job) for each in (everything, of_draft, of_account, of_both))
    assert [each.key[1:] for each in (everything, of_draft, of_account, of_both)] == [
        ("", ""),
        ("draft", "draft"),
        ("account", "page"),
        ("draft", "draft"),
    ]
    other = replace(job, target=replace(PAGE, social_account_id="other"))
    assert [each.takes(other) for each in (everything, of_draft, of_account, of_both)] == [True, True, False, False]


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1), st.integers(1, 5))
def test_the_mark_never_passes_what_is_pending(firsts: dict[str, int], most: int) -> None:
    pending = Pending()
    pending.add(firsts)
    pending.add(dict.fromkeys(firsts, 60))
    sent: list[str] = []
    while pending:
        assert pending.safe(100) == min(firsts[each] for each in firsts.keys() - set(sent)) - 1
        sent += pending.take(most)
    assert [firsts[each] for each in sent] == sorted(firsts.values())
    assert pending.safe(100) == 100


def test_only_the_last_of_several_messages_moves_on() -> None:
    news = changes([sending(), sending()], MARK, safe=9)
    assert [each.mark.sequence for each in news] == [7, 9]
    assert [each.mark.sequence for each in changes([sending()], MARK, safe=5)] == [7]
    assert changes([], MARK, safe=9) == []
