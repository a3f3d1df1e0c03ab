import pytest

from devstack.sandbox.faults import BadRule, Fault, Faults, Operation


def _faults(*rules: object) -> Faults:
    faults = Faults()
    faults.replace(list(rules))
    return faults


def test_without_rules_there_are_no_faults() -> None:
    assert Faults().take(Operation.POST, "a1", "text") is None


def test_a_rule_is_used_up_after_its_count() -> None:
    faults = _faults({"fault": "slow", "count": 2})
    assert [faults.take(Operation.POST, "a1") is not None for _ in range(3)] == [True, True, False]


def test_a_rule_without_a_count_stays() -> None:
    faults = _faults({"fault": "slow"})
    assert all(faults.take(Operation.POST, "a1") for _ in range(10))


def test_the_next_rule_follows_when_the_first_is_used_up() -> None:
    faults = _faults({"fault": "slow", "count": 1}, {"fault": "garbage", "count": 1})
    taken = [faults.take(Operation.POST, "a1") for _ in range(3)]
    assert [rule.fault if rule else None for rule in taken] == [Fault.SLOW, Fault.GARBAGE, None]


def test_a_rule_for_posts_leaves_reads_alone() -> None:
    faults = _faults({"fault": "slow"})
    assert faults.take(Operation.LOOKUP, "a1") is None
    assert faults.take(Operation.ACCOUNT, "a1") is None


def test_new_rules_replace_the_old_ones_only_when_all_are_good() -> None:
    faults = _faults({"fault": "slow", "seconds": 1})
    with pytest.raises(BadRule):
        faults.replace([{"fault": "garbage"}, {"fault": "nonsense"}])
    assert [rule["fault"] for rule in faults.described()] == ["slow"]
    faults.replace([])
    assert faults.described() == []
