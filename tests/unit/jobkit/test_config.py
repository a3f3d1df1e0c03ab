"""Validation of a scheduler's configuration."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobkit.config import Config
from jobkit.retry import RetryPolicy
from jobkit.stores.memory import MemoryStore


@pytest.mark.parametrize(
    "settings",
    [
        {"on_document": None},
        {"on_batch": lambda jobs: None},
        {"batch": 0},
        {"workers": 0},
        {"idle_delay": timedelta(0)},
        {"lock_duration": timedelta(0)},
        {"lock_duration": timedelta.max},
        {"pace": timedelta(seconds=-1)},
        {"run_timeout": timedelta(0)},
        {"cancel_grace": timedelta(seconds=-1)},
        {"batch_time": timedelta(seconds=-1)},
    ],
    ids=", ".join,
)
def test_an_invalid_configuration_is_refused(settings: dict[str, object]) -> None:
    plain: dict[str, object] = {"store": MemoryStore(), "on_document": lambda job: None}
    with pytest.raises(ValueError, match=r"either|at least one|positive|negative|at most"):
        Config(**(plain | settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"idle_delay": 1}, "idle_delay must be a timedelta, such as timedelta(seconds=1), not 1"),
        ({"lock_duration": "10 min"}, "lock_duration must be a timedelta"),
        ({"run_timeout": 5.0}, "run_timeout must be a timedelta or None, not 5.0"),
        ({"batch": 2.5}, "batch must be an int, not 2.5"),
        ({"workers": True}, "workers must be an int, not True"),
        ({"name": None}, "name must be a str, not None"),
        ({"retry": 3}, "retry must be a RetryPolicy, not 3"),
        ({"on_document": "do"}, "on_document must be a function, not 'do'"),
        ({"on_error": 1}, "on_error must be a function, not 1"),
        ({"monotonic": None}, "monotonic"),
        ({"store": {}}, "store must be a JobStore; {} has no now, lock_next, remove, extend, next_due"),
        ({"store": None}, "store must be a JobStore; None has no now"),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_is_refused_by_name(settings: dict[str, object], message: str) -> None:
    plain: dict[str, object] = {"store": MemoryStore(), "on_document": lambda job: None}
    with pytest.raises(TypeError) as refused:
        Config(**(plain | settings))  # type: ignore[arg-type]
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda: RetryPolicy(max_attempts="5"), "max_attempts must be of type int, not '5'"),  # type: ignore[arg-type]
        (lambda: RetryPolicy(first=5), "first must be of type timedelta, not 5"),  # type: ignore[arg-type]
    ],
)
def test_a_retry_policy_says_which_type_it_takes(policy: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        policy()
    assert message in str(refused.value)
