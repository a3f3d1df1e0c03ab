from benchmarks.costs import LIFE, NOTHING, Cost, results


def cost(method: str, **cpu: float) -> Cost:
    return Cost(method=method, cpu=cpu, statements=1, transactions=1, wal=1, events=1, envelopes=1, per_second=1)


def test_the_headlines_are_ratios_to_a_call_that_does_nothing() -> None:
    costs = [cost(NOTHING, nothing=100), *(cost(name, drafts=200, postgresql=100) for name in LIFE)]
    found = results([*costs, cost("GetDraft", drafts=250), cost("BatchCreateDrafts", drafts=50)])
    assert [(one.name, one.ratio) for one in found if not one.of] == [
        ("calls of a post: CreateDraft + ApproveDraft + ScheduleAt", 9.0),
        ("GetDraft", 2.5),
        ("BatchCreateDrafts, per item", 0.5),
    ]


def test_each_method_has_its_figures_by_process() -> None:
    costs = [cost(name, drafts=200, postgresql=100) for name in (NOTHING, *LIFE, "GetDraft")]
    figures = {one.name: one.value for one in results(costs) if one.of == "ScheduleAt"}
    assert figures["CPU: drafts"] == 200
    assert figures["CPU"] == 300
    assert figures["ratio"] == 1.0
