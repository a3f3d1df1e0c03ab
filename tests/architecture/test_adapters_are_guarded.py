"""Adapters are called by `Provider` alone: an adapter that raises or hangs must not end a process."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path("services/publisher/publisher_service")
PROVIDERS = PACKAGE / "adapters/providers"
GUARD = PROVIDERS / "provider.py"
# Makes the adapters, and calls none.
MAKER = PACKAGE / "networks.py"
CALLS = frozenset({"verify", "send", "look"})
ALL_CALLS = CALLS | {"prepare", "check"}


def adapter_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Names the classes that have a method of an adapter, and their subclasses."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {each.name for each in classes if any(_is_call(member) for member in each.body)} | {"Adapter"}
    while more := {each.name for each in classes if found & set(map(_name, each.bases))} - found:
        found |= more
    return frozenset(found)


def _is_call(member: ast.stmt) -> bool:
    return isinstance(member, ast.AsyncFunctionDef) and member.name in CALLS


def _name(node: ast.AST) -> str:
    """Returns the last part of a dotted name."""
    return getattr(node, "attr", "") or getattr(node, "id", "")


def unguarded(tree: ast.Module, adapters: frozenset[str]) -> Iterator[str]:
    """Finds what a module outside the guard does with adapters, except to pass a new one to `Providers`."""
    handed_over = {
        id(argument)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _name(call.func) == "Providers"
        for argument in ast.walk(call)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and _name(node) in adapters and id(node) not in handed_over:
            yield f"line {node.lineno}: {_name(node)}"
        if isinstance(node, ast.alias) and node.asname and node.name in adapters:
            yield f"line {node.lineno}: {node.name} under another name"
        if isinstance(node, ast.Attribute) and node.attr == "_adapter":
            yield f"line {node.lineno}: an adapter behind its guard"


@pytest.fixture(scope="module")
def adapters(modules: Mapping[Path, ast.Module], root: Path) -> frozenset[str]:
    return adapter_classes(
        tree for file, tree in modules.items() if file.is_relative_to(root / PROVIDERS) and file != root / GUARD
    )


def test_adapters_are_known(adapters: frozenset[str]) -> None:
    assert adapters == {
        "Adapter",
        "LinkedInAdapter",
        "LinkedInPageAdapter",
        "FacebookAdapter",
        "InstagramAdapter",
        "PreparingAdapter",
        "SandboxAdapter",
        "SandboxBlindAdapter",
        "SandboxContainerAdapter",
        "SandboxHttp",
        "SandboxLookupAdapter",
        "TelegramAdapter",
        "SmtpAdapter",
        "UnipileAdapter",
        "WebhookAdapter",
    }


def test_only_the_guard_has_an_adapter(
    modules: Mapping[Path, ast.Module], root: Path, adapters: frozenset[str]
) -> None:
    outside = {
        file: tree
        for file, tree in modules.items()
        if file.is_relative_to(root / PACKAGE) and not file.is_relative_to(root / PROVIDERS) and file != root / MAKER
    }
    assert outside
    found = {str(file.relative_to(root)): list(unguarded(tree, adapters)) for file, tree in outside.items()}
    assert {file: uses for file, uses in found.items() if uses} == {}


def test_what_makes_the_adapters_calls_none(modules: Mapping[Path, ast.Module], root: Path) -> None:
    used = {node.attr for node in ast.walk(modules[root / MAKER]) if isinstance(node, ast.Attribute)}
    assert used & ALL_CALLS == set()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("providers = Providers([SandboxAdapter(http, url, limits)], clock)", 0),
        ("sandbox = SandboxAdapter(http, url, limits)\nawait sandbox.send(post)", 1),
        ("async def ask(adapter: Adapter) -> None:\n    await adapter.look(post)", 1),
        ("await providers.get('sandbox')._adapter.send(post)", 1),
        ("await sandbox.SandboxAdapter(http, url, limits).send(post)", 1),
        ("from providers.sandbox import SandboxAdapter as Box\nawait Box(http, url, limits).send(post)", 1),
    ],
)
def test_the_rule_finds_an_unguarded_call(source: str, count: int) -> None:
    found = list(unguarded(ast.parse(source), frozenset({"Adapter", "SandboxAdapter"})))
    assert len(found) == count


@pytest.mark.parametrize(
    "source",
    [
        "class Odd:\n async def verify(self): ...\n async def send(self): ...\n async def look(self): ...",
        "class Odd(SandboxAdapter):\n async def send(self): ...",
        "class Odd(sandbox.SandboxAdapter):\n name = 'odd'",
        "class Half:\n async def look(self): ...\nclass Odd(Half):\n name = 'odd'",
    ],
    ids=["all methods", "one method", "none", "in two parts"],
)
def test_the_rule_knows_an_adapter_however_it_is_written(source: str) -> None:
    assert "Odd" in adapter_classes([ast.parse("class SandboxAdapter(Adapter): ..."), ast.parse(source)])
