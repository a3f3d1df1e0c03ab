from benchmarks import seed
from benchmarks.dispatch import Dispatched, fairness, of_tenant, rates
from benchmarks.floor import Floor
from publisher_service.domain.post_job import Target, job_id

FLOOR = Floor(per_second=200_000, cpu=7.5)


def test_a_rate_is_shown_with_its_floor_and_its_growth() -> None:
    alone, beside, behind = (Dispatched(per_command=each, floor=FLOOR) for each in (40, 44, 46))
    found = {one.name: one for one in rates(20_000, alone, 1_000_000, beside, behind)}
    assert found["dispatch, rate"].value == 25_000
    assert found["dispatch against the floor"].ratio == 8
    assert found["dispatch, 20,000 slots due at once"].meets_target
    assert found["dispatch beside 1,000,000 future slots, other accounts"].meets_target
    assert not found["dispatch beside 1,000,000 future slots, same accounts"].meets_target


def test_small_tenants_may_be_two_seconds_late() -> None:
    assert all(one.meets_target for one in fairness(20_000, [1.0, 1999.0]))
    assert not all(one.meets_target for one in fairness(20_000, [1.0, 2001.0]))


def test_a_post_of_another_tenant_is_another_job() -> None:
    [post] = seed.posts(1, "burst")
    target = Target(social_account_id=post.account_id, channel="facebook")
    assert of_tenant(post, "big").job_id == job_id("big", post.draft_id, target) != post.job_id
