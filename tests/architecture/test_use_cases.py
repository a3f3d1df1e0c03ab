"""A use case runs alone: it calls no other one, and asks nobody else while it holds a transaction open."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Providers are called through a class, not a Protocol.
PROVIDERS = {"Provider", "Providers"}
HELD = {"AsyncConnection", "Transaction"}
TRANSACTIONS = {
    "self._database.run",
    "self._database.statement",
    "self._database.transaction",
    "self._ledger.once",
    "self._together",
}

Parsed = Mapping[str, ast.Module]


@pytest.fixture(scope="module")
def use_cases(modules: Mapping[Path, ast.Module], root: Path) -> dict[str, ast.Module]:
    found = {file.relative_to(root) for file in modules if "application" in file.parts}
    return {str(file): modules[root / file] for file in found if file.parts[0] == "services"}


def test_no_use_case_calls_another(use_cases: Parsed) -> None:
    """The parts that two of them share run inside the transaction of their caller."""
    assert len(use_cases) > 40
    callable_names = {
        (Path(file).parts[1], node.name)
        for file, module in use_cases.items()
        for node in classes(module)
        if is_use_case(node)
    }
    assert len(callable_names) > 20
    found = [
        f"{file}: {alias.name}"
        for file, module in use_cases.items()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module and "_service.application" in node.module
        for alias in node.names
        if (Path(file).parts[1], alias.name) in callable_names
    ]
    assert found == []


def test_nobody_is_asked_while_a_transaction_is_open(use_cases: Parsed) -> None:
    remote = PROVIDERS | {node.name for module in use_cases.values() for node in classes(module) if is_remote(node)}
    assert remote > PROVIDERS
    found = [f"{file}: {call}" for file, module in use_cases.items() for call in asked_inside(module, remote)]
    assert found == []


SOURCE = """
class Schedule(Protocol):
    async def slot_times(self, account_id: str) -> SlotTimes: ...

class Rows(Protocol):
    async def page(self, connection: AsyncConnection) -> list[Row]: ...

class AddToQueue:
    def __init__(self, *, schedule: Schedule, rows: Rows) -> None:
        self._schedule = schedule
        self._rows = rows

    async def __call__(self, account_id: str) -> Slot:
        await self._schedule.slot_times(account_id)

    async def _book(self, tx: Transaction, rows: Rows, schedule: Schedule) -> Slot:
        await self._rows.page(tx.connection)
        await rows.page(tx.connection)
        {call}
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("pass", []),
        ("await self._schedule.slot_times('a')", ["line 19: await self._schedule.slot_times('a')"]),
        ("await schedule.slot_times('a')", ["line 19: await schedule.slot_times('a')"]),
        ("return [await self._schedule.slot_times(a) for a in 'ab']", ["line 19: await self._schedule.slot_times(a)"]),
    ],
)
def test_the_rule_finds_a_call_in_a_transaction(call: str, found: list[str]) -> None:
    module = ast.parse(SOURCE.replace("{call}", call))
    remote = {node.name for node in classes(module) if is_remote(node)}
    assert remote == {"Schedule"}
    assert list(asked_inside(module, remote)) == found


def classes(module: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in module.body if isinstance(node, ast.ClassDef))


def is_use_case(node: ast.ClassDef) -> bool:
    """Tells if the class runs transactions of its own. A part that only reads, or gets one, belongs to its callers."""
    calls = {ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    members = {member.name for member in node.body if isinstance(member, FUNCTIONS)}
    return "__call__" in members and bool(calls & TRANSACTIONS)


def is_remote(node: ast.ClassDef) -> bool:
    """Tells if what is behind a Protocol of a use case is elsewhere: it is not given the transaction."""
    if not any(ast.unparse(base) == "Protocol" for base in node.bases):
        return False
    given = {
        name
        for member in node.body
        if isinstance(member, FUNCTIONS)
        for names in annotations(member).values()
        for name in names
    }
    return not given & HELD


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, set[str]]:
    """Returns the names that the annotation of each parameter mentions."""
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {
        each.arg: {node.id for node in ast.walk(each.annotation) if isinstance(node, ast.Name)}
        for each in parameters
        if each.annotation
    }


def asked_inside(module: ast.Module, remote: set[str]) -> Iterator[str]:
    for node in classes(module):
        fields = {f"self.{name}" for name in remote_fields(node, remote)}
        for function in (each for each in ast.walk(node) if isinstance(each, FUNCTIONS)):
            given = annotations(function)
            if not any(names & HELD for names in given.values()):
                continue
            asked = fields | {name for name, names in given.items() if names & remote}
            for call in (each for each in ast.walk(function) if isinstance(each, ast.Await)):
                target = call.value.func if isinstance(call.value, ast.Call) else call.value
                if any(ast.unparse(target) == name or ast.unparse(target).startswith(f"{name}.") for name in asked):
                    yield f"line {call.lineno}: {ast.unparse(call)}"


def remote_fields(node: ast.ClassDef, remote: set[str]) -> Iterator[str]:
    for function in (each for each in node.body if isinstance(each, FUNCTIONS) and each.name == "__init__"):
        given = annotations(function)
        for assignment in (each for each in ast.walk(function) if isinstance(each, ast.Assign)):
            if given.get(ast.unparse(assignment.value), set()) & remote:
                yield from (target.attr for target in assignment.targets if isinstance(target, ast.Attribute))
