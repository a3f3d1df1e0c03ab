from benchmarks.queue_calls import BATCH, Account, Post, batches
from benchmarks.queues import Rate, growth, rates

FAST = Rate(calls=[90e-6, 100e-6, 300e-6], bare=[20e-6, 25e-6, 30e-6], queue_cpu=[80e-6], cpu=[200e-6])
SLOW = Rate(calls=[3e-3], bare=[1e-3], queue_cpu=[1e-3], cpu=[2e-3])


def test_growth_is_the_ratio_of_the_medians() -> None:
    [grown] = growth(10_000, [0.004, 0.0055, 0.9], [0.001, 0.005, 0.9])
    assert (round(grown.value, 6), grown.ratio, grown.meets_target) == (5.5, 1.1, True)
    [grown] = growth(10_000, [0.006], [0.005])
    assert not grown.meets_target


def test_a_rate_is_the_median_of_its_rounds_beside_its_floor() -> None:
    found = {result.name: result for result in rates(SLOW, FAST)}
    batch = found["BatchAddToQueue of 1,000"]
    assert (round(batch.value, 6), batch.meets_target) == (100, True)
    assert round(found["BatchAddToQueue of 1,000, rate"].value) == 10_000
    assert round(found["BatchAddToQueue of 1,000 against the floor"].ratio or 0, 6) == 4
    assert round(found["BatchAddToQueue of 1,000, CPU of Queue's process"].value) == 80
    assert round(found["BatchAddToQueue of 1,000, CPU of everything"].value) == 200
    assert not found["AddToQueue, 16 clients, 400 accounts"].meets_target
    assert round(found["AddToQueue, 16 clients, 400 accounts, rate"].value) == 333


def test_a_batch_call_has_drafts_of_one_organization() -> None:
    accounts = [Account("a", "1"), Account("b", "1")]
    posts = [Post(account, f"{account.organization_id}{number}") for number in range(BATCH + 1) for account in accounts]
    calls = batches(posts)
    assert [len(call) for call in calls] == [BATCH, 1, BATCH, 1]
    assert all(len({post.account.organization_id for post in call}) == 1 for call in calls)
    assert [post.draft_id for post in calls[0][:2]] == ["a0", "a1"]
