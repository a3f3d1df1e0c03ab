"""The code has the shape that CONTRIBUTING describes: what layers may do, how long functions are, names."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

LONGEST_FUNCTION = 60
IMPURE = {"asyncio", "logging", "os", "random", "secrets", "socket", "subprocess", "threading", "time"}
ENCODING = {"FromString", "MergeFromString", "ParseFromString", "SerializeToString"}
# A level of its own for the lines of calls.
NAMED_LOGGERS = {"libs/servicekit/rpc/observe.py"}

Modules = Mapping[Path, ast.Module]


@pytest.fixture(scope="module")
def sources(modules: Modules, root: Path) -> dict[str, ast.Module]:
    """The code of services and libraries, by its path."""
    return {
        str(file.relative_to(root)): module
        for file, module in modules.items()
        if file.is_relative_to(root / "services") or file.is_relative_to(root / "libs")
    }


@pytest.fixture(scope="module")
def layers(sources: Mapping[str, ast.Module]) -> dict[str, dict[str, ast.Module]]:
    """The modules of all services by layer."""
    found: dict[str, dict[str, ast.Module]] = defaultdict(dict)
    for file, module in sources.items():
        if file.startswith("services/") and len(parts := Path(file).parts) > 3:
            found[Path(parts[3]).stem][file] = module
    return found


def test_entrypoints_decide_nothing_and_know_no_adapter(layers: Mapping[str, Mapping[str, ast.Module]]) -> None:
    entrypoints = layers["entrypoints"]
    assert len(entrypoints) > 10
    found = [f"{file}: try" for file, module in entrypoints.items() for node in ast.walk(module) if is_try(node)]
    found += [
        f"{file}: {name}" for file, module in entrypoints.items() for name in imported(module) if ".adapters" in name
    ]
    assert found == []


def test_use_cases_encode_nothing(layers: Mapping[str, Mapping[str, ast.Module]]) -> None:
    assert len(layers["application"]) > 40
    found = [
        f"{file}: {node.attr}"
        for file, module in layers["application"].items()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr in ENCODING
    ]
    assert found == []


def test_wire_passes_no_protobuf_on(layers: Mapping[str, Mapping[str, ast.Module]]) -> None:
    """A name in `__all__` of `wire` was a message that use cases then imported from there."""
    assert len(layers["wire"]) > 3
    found = [f"{file}: __all__" for file, module in layers["wire"].items() if "__all__" in assigned(module)]
    assert found == []


def test_the_domain_does_not_know_the_machine(layers: Mapping[str, Mapping[str, ast.Module]]) -> None:
    """Time, chance and ids are arguments: what a rule decides depends on nothing else."""
    assert len(layers["domain"]) > 40
    found = [
        f"{file}: {name}"
        for file, module in layers["domain"].items()
        for name in imported(module)
        if name.partition(".")[0] in IMPURE
    ]
    assert found == []


def test_no_function_is_longer_than_a_screen(sources: Mapping[str, ast.Module]) -> None:
    found = [
        f"{file}: {node.name} has {length(node)} lines"
        for file, module in sources.items()
        for node in functions(module)
        if length(node) > LONGEST_FUNCTION
    ]
    assert found == []


def test_no_two_adapter_functions_of_a_service_share_a_name(layers: Mapping[str, Mapping[str, ast.Module]]) -> None:
    """A reader of a call that imports one of them takes it for the other."""
    first: dict[tuple[str, str], str] = {}
    found = []
    for file, module in layers["adapters"].items():
        for node in module.body:
            if isinstance(node, FUNCTIONS) and not node.name.startswith("_") and "/migrations/" not in file:
                other = first.setdefault((Path(file).parts[1], node.name), file)
                found += [f"{file}: {node.name}, as {Path(other).name} has"] if other != file else []
    assert len(first) > 100
    assert found == []


def test_adapters_are_named_after_things(layers: Mapping[str, Mapping[str, ast.Module]]) -> None:
    found = [file for file in layers["adapters"] if Path(file).stem in {"hot", "store"} or file.endswith("_store.py")]
    assert found == []


def test_timestamps_are_converted_in_one_place(sources: Mapping[str, ast.Module]) -> None:
    found = [
        f"{file}: {node.attr}"
        for file, module in sources.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr in {"FromDatetime", "ToDatetime"}
    ]
    assert found == []


def test_loggers_and_meters_have_one_name(sources: Mapping[str, ast.Module]) -> None:
    found = [
        f"{file}: line {call.lineno}: {ast.unparse(node)[:60]}"
        for file, module in sources.items()
        for node in module.body
        if not isinstance(node, FUNCTIONS)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and not is_named_well(node, call, file)
    ]
    assert found == []


def is_named_well(node: ast.stmt, call: ast.Call, file: str) -> bool:
    """Tells if the statement is `_log = getLogger(__name__)` or `_meter = get_meter(__name__)`, or neither."""
    name = {"getLogger": "_log", "get_meter": "_meter"}.get(ast.unparse(call.func).rpartition(".")[2])
    if name is None:
        return True
    is_assigned = isinstance(node, ast.Assign) and node.value is call and ast.unparse(node.targets[0]) == name
    return is_assigned and (ast.unparse(call).endswith("(__name__)") or file in NAMED_LOGGERS)


TRIES = (ast.Try, ast.TryStar)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_try(node: ast.AST) -> bool:
    return isinstance(node, TRIES)


@pytest.mark.parametrize("source", ["try:\n    pass\nfinally:\n    pass", "try:\n    pass\nexcept* OSError:\n    pass"])
def test_the_rule_finds_a_try(source: str) -> None:
    assert any(map(is_try, ast.walk(ast.parse(source))))


def test_the_rule_finds_an_import_however_it_is_written() -> None:
    source = "import random\nimport os.path\nfrom time import sleep\nfrom queue_service import adapters"
    assert list(imported(ast.parse(source))) == [
        "random",
        "os.path",
        "time",
        "time.sleep",
        "queue_service",
        "queue_service.adapters",
    ]


def imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def assigned(module: ast.Module) -> set[str]:
    targets: Iterable[ast.expr] = [
        target for node in module.body if isinstance(node, ast.Assign) for target in node.targets
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(module) if isinstance(node, FUNCTIONS))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
