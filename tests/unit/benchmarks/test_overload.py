from benchmarks.drain import Counted
from benchmarks.overload import results


def test_commands_and_events_have_their_targets() -> None:
    found = results("4,000 due", Counted(1.01, 1.06, 0.02))
    assert [(one.name, one.target, one.meets_target) for one in found] == [
        ("commands, 4,000 due", 1.02, True),
        ("events, 4,000 due", 1.05, False),
    ]
