from benchmarks.flames import dearest


def box(name: str, depth: int, start: int, samples: int) -> str:
    return (
        f'<g><title>{name} ({samples:,} samples, 40.10%)</title><rect x="0.0000%" y="{52 + 16 * depth}" '
        f'width="40%" height="15" fill="rgb(227,0,7)" fg:x="{start}" fg:w="{samples}"/></g>'
    )


GRAPH = "".join(
    [
        box("all", 0, 0, 100),
        box("serve", 1, 0, 100),
        box("send", 2, 0, 60),
        box("encode&lt;T&gt;", 3, 10, 20),
        box("encode&lt;T&gt;", 4, 15, 10),
        box("settle", 2, 60, 30),
        box("encode&lt;T&gt;", 3, 60, 25),
    ]
)


def test_own_time_is_what_no_called_function_has() -> None:
    own, _ = dearest(GRAPH, 10)
    assert own == [("encode<T>", 0.45), ("send", 0.4), ("serve", 0.1), ("settle", 0.05)]


def test_a_function_that_calls_itself_counts_once() -> None:
    _, inclusive = dearest(GRAPH, 10)
    assert inclusive == [("serve", 1.0), ("send", 0.6), ("encode<T>", 0.45), ("settle", 0.3)]


def test_what_every_process_begins_with_is_not_shown_as_dear() -> None:
    graph = box("all", 0, 0, 9) + box("main (queue_service/main.py:46)", 1, 0, 9) + box("work (a.py:1)", 2, 0, 9)
    assert dearest(graph, 10)[1] == [("work (a.py:1)", 1.0)]


def test_only_the_dearest_are_returned() -> None:
    own, inclusive = dearest(GRAPH, 1)
    assert (len(own), len(inclusive)) == (1, 1)


def test_a_graph_without_samples_has_no_functions() -> None:
    assert dearest("<svg></svg>", 3) == ([], [])
