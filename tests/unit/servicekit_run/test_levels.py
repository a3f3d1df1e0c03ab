from collections.abc import Mapping

from servicekit.run.levels import Level


class FakeGauge:
    def __init__(self) -> None:
        self.seen: list[tuple[float, Mapping[str, str] | None]] = []

    def set(self, amount: float, attributes: Mapping[str, str] | None = None) -> None:
        self.seen.append((amount, attributes))


def test_a_gauge_is_set_to_the_first_value_and_when_it_changes() -> None:
    gauge = FakeGauge()
    level = Level(gauge, {"provider": "sandbox"})
    for value in (0, 0, 3, 3, 0):
        level.set(value)
    assert gauge.seen == [(value, {"provider": "sandbox"}) for value in (0, 3, 0)]
