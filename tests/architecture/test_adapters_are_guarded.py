"""Nobody but `Provider` calls an adapter: an adapter that raises or hangs must not end a process."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path("services/publisher/publisher_service")
PROVIDERS = PACKAGE / "adapters/providers"
GUARD = PROVIDERS / "provider.py"
CALLS = frozenset({"verify", "send", "look"})


def adapter_classes(tree: ast.Module) -> Iterator[str]:
    """The classes that have the methods of an adapter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, ast.AsyncFunctionDef)}
            if methods >= CALLS:
                yield node.name


def unguarded(tree: ast.Module, adapters: frozenset[str]) -> Iterator[str]:
    """What a module outside the guard does with adapters, except to hand a new one to `Providers`."""
    handed_over = {
        id(argument)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Providers"
        for argument in ast.walk(call)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in adapters and id(node) not in handed_over:
            yield f"line {node.lineno}: {node.id}"
        if isinstance(node, ast.Attribute) and node.attr == "_adapter":
            yield f"line {node.lineno}: an adapter behind its guard"


@pytest.fixture(scope="module")
def adapters(modules: Mapping[Path, ast.Module], root: Path) -> frozenset[str]:
    files = {file: tree for file, tree in modules.items() if file.is_relative_to(root / PROVIDERS)}
    named = {name for file, tree in files.items() if file != root / GUARD for name in adapter_classes(tree)}
    return frozenset(named)


def test_adapters_are_known(adapters: frozenset[str]) -> None:
    assert adapters == {"Adapter", "SandboxAdapter"}


def test_nobody_but_the_guard_has_an_adapter(
    modules: Mapping[Path, ast.Module], root: Path, adapters: frozenset[str]
) -> None:
    outside = {
        file: tree
        for file, tree in modules.items()
        if file.is_relative_to(root / PACKAGE) and not file.is_relative_to(root / PROVIDERS)
    }
    assert outside
    found = {str(file.relative_to(root)): list(unguarded(tree, adapters)) for file, tree in outside.items()}
    assert {file: uses for file, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("providers = Providers([SandboxAdapter(http, url, limits)], clock)", 0),
        ("sandbox = SandboxAdapter(http, url, limits)\nawait sandbox.send(post)", 1),
        ("async def ask(adapter: Adapter) -> None:\n    await adapter.look(post)", 1),
        ("await providers.get('sandbox')._adapter.send(post)", 1),
    ],
)
def test_the_rule_finds_an_unguarded_call(source: str, count: int) -> None:
    found = list(unguarded(ast.parse(source), frozenset({"Adapter", "SandboxAdapter"})))
    assert len(found) == count
