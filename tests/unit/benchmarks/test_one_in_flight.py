from collections.abc import Mapping

from benchmarks.one_in_flight import overlapping


def request(account: str, arrival: int, decided: int, operation: str = "post") -> Mapping[str, str]:
    moments = {"arrival": f"2026-01-01T00:00:0{arrival}+00:00", "time": f"2026-01-01T00:00:0{decided}+00:00"}
    return {"account": account, "operation": operation, **moments}


def test_an_account_with_two_requests_at_once_is_found() -> None:
    assert overlapping([request("a", 1, 3), request("b", 1, 2), request("a", 2, 4), request("b", 2, 3)]) == ["a"]


def test_the_order_of_the_ledger_is_that_of_the_decisions() -> None:
    assert overlapping([request("a", 3, 4), request("a", 1, 2)]) == []
    assert overlapping([request("a", 2, 3), request("a", 1, 4)]) == ["a"]


def test_reads_and_other_accounts_do_not_count() -> None:
    assert overlapping([request("a", 1, 4), request("a", 2, 3, "lookup"), request("b", 2, 3)]) == []
