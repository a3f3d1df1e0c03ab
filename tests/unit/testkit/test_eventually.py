import pytest

from testkit.eventually import eventually


async def test_the_first_true_value_is_returned() -> None:
    values = iter([0, "", "there"])
    assert await eventually(lambda: next(values)) == "there"


async def test_a_coroutine_function_is_a_condition_too() -> None:
    values = iter([False, True])

    async def condition() -> bool:
        return next(values)

    assert await eventually(condition)


async def test_a_failed_assertion_is_retried() -> None:
    values = iter([1, 2, 3])

    def condition() -> bool:
        assert next(values) == 3
        return True

    assert await eventually(condition)


async def test_the_last_value_is_shown_at_the_deadline() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s; the last value was \[\]"):
        await eventually(list[int], within=0.05)


async def test_the_last_assertion_is_shown_at_the_deadline() -> None:
    def condition() -> bool:
        raise AssertionError("three is missing")

    with pytest.raises(AssertionError, match="three is missing"):
        await eventually(condition, within=0.05)


async def test_other_errors_are_not_waited_out() -> None:
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 / 0)
