from benchmarks.calls import CALLERS, Method


async def call(_number: int) -> None:
    pass


def test_a_cheap_call_is_measured_more_often() -> None:
    assert Method("CreateDraft", call).measured(2000) == 2000
    assert Method("nothing", call, times=5).measured(2000) == 10_000


def test_a_call_of_many_items_is_made_less_often_but_by_every_caller() -> None:
    batch = Method("BatchCreateDrafts", call, times=5, items=100)
    assert batch.measured(2000) == 100
    assert batch.measured(10) == batch.counted == CALLERS
