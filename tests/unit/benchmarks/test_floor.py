from benchmarks.floor import Floor, middle


def test_a_round_that_was_disturbed_changes_nothing() -> None:
    rounds = [Floor(per_second=rate, cpu=cpu) for rate, cpu in ((200, 6.2), (210, 6.4), (90, 15.0))]
    assert middle(rounds) == Floor(per_second=200, cpu=6.4)
