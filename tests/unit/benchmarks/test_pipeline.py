from collections import Counter

from benchmarks.drain import Counted, Drained
from benchmarks.floor import Floor
from benchmarks.pipeline import results
from benchmarks.wal import Written

FLOOR = Floor(per_second=100_000, cpu=8.0)


def drained(posts: int, cpu: float) -> Drained:
    slot = ("queue", "slot")
    written = Written(
        bytes=Counter(queue=posts * 100),
        commits=Counter(queue=posts // 50),
        updated=Counter({slot: posts}),
        hot=Counter({slot: 3 * posts}),
        entries=Counter({slot: 2 * posts}),
    )
    counted = Counted(1.0, 1.0, 0.02)
    return Drained(
        posts=posts,
        per_second=2000,
        cpu={"queue": cpu / 2, "postgresql": cpu / 2},
        sandbox=30,
        counted=counted,
        written=written,
    )


def test_the_headline_is_the_ratio_to_the_floor_of_the_same_run() -> None:
    first = results([(FLOOR, drained(10_000, 400))])[0]
    assert (first.ratio, first.target, first.meets_target) == (50.0, 45, False)


def test_two_sizes_have_a_ratio_to_each_other() -> None:
    found = results([(FLOOR, drained(10_000, 400)), (FLOOR, drained(60_000, 420))])
    (growth,) = [one for one in found if one.baseline == 400]
    assert (growth.ratio, growth.target) == (1.05, 1.05)
    assert {one.of for one in found if one.name == "CPU per post"} == {"10,000 posts", "60,000 posts"}


def test_what_was_written_is_shown_per_post_and_table() -> None:
    found = {(one.of, one.name): one.value for one in results([(FLOOR, drained(10_000, 400))])}
    assert found["10,000 posts", "posts per transaction: queue"] == 50
    assert found["10,000 posts", "index entries"] == 2
    assert found["queue.slot", "updates"] == 4
    assert found["queue.slot", "HOT share"] == 0.75
