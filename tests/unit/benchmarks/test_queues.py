from collections.abc import Mapping

from benchmarks.queue_calls import BATCH, Account, Post, batches
from benchmarks.queues import Rate, growth, rates

CPU: list[Mapping[str, float]] = [
    {"queue": 80e-6, "nats": 1e-6},
    {"queue": 90e-6, "nats": 5e-6},
    {"queue": 10e-6, "nats": 2e-6},
]
FAST = Rate(calls=[90e-6, 100e-6, 300e-6], bare=[20e-6, 25e-6, 30e-6], cpu=CPU)
SLOW = Rate(calls=[3e-3], bare=[1e-3], cpu=[{"queue": 1e-3, "nats": 2e-3}])


def test_growth_is_the_ratio_of_the_medians() -> None:
    [grown] = growth(10_000, [0.004, 0.0055, 0.9], [0.001, 0.005, 0.9])
    assert (round(grown.value, 6), grown.ratio, grown.meets_target) == (5.5, 1.1, True)
    [grown] = growth(10_000, [0.006], [0.005])
    assert not grown.meets_target


def test_a_rate_is_the_median_of_its_rounds_beside_target_and_floor() -> None:
    found = {result.name: result for result in rates(SLOW, SLOW, FAST) if not result.of}
    alone = found["BatchAddToQueue of 1,000, alone"]
    assert (round(alone.value, 6), alone.meets_target) == (100, True)
    rate = found["BatchAddToQueue of 1,000, alone, rate"]
    assert (round(rate.value), round(rate.ratio or 0, 6)) == (10_000, 1)
    assert round(found["BatchAddToQueue of 1,000, alone, against the floor"].ratio or 0, 6) == 4
    assert not found["AddToQueue, 16 clients, 400 accounts"].meets_target
    slow = found["AddToQueue, 16 clients, 400 accounts, rate"]
    assert (round(slow.value), round(slow.ratio or 0, 3)) == (333, 0.833)
    assert round(found["BatchAddToQueue of 1,000, 4 clients, rate"].ratio or 0, 3) == 0.033


def test_cpu_is_shown_by_process_and_in_all() -> None:
    found = {(result.of, result.name): round(result.value, 6) for result in rates(SLOW, SLOW, FAST) if result.of}
    alone = "CPU of BatchAddToQueue of 1,000, alone"
    assert (found[alone, "queue"], found[alone, "nats"], found[alone, "all"]) == (80, 2, 81)
    assert found["CPU of AddToQueue", "all"] == 3000


def test_a_batch_call_has_drafts_of_one_organization() -> None:
    accounts = [Account("a", "1"), Account("b", "1")]
    posts = [Post(account, f"{account.organization_id}{number}") for number in range(BATCH + 1) for account in accounts]
    calls = batches(posts)
    assert [len(call) for call in calls] == [BATCH, 1, BATCH, 1]
    assert all(len({post.account.organization_id for post in call}) == 1 for call in calls)
    assert [post.draft_id for post in calls[0][:2]] == ["a0", "a1"]
