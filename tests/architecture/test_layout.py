"""Files and folders are where they belong, and have names that say what they are."""

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

SKELETON = (
    "main.py",
    "settings.py",
    "domain/__init__.py",
    "application/__init__.py",
    "adapters/__init__.py",
    "adapters/postgres/tables.py",
    "adapters/postgres/migrations/__init__.py",
    "entrypoints/rpc.py",
    "entrypoints/loops.py",
)
HEADINGS = ["Owns", "Offers", "Consumes", "Emits", "Tables", "Limits", "Runbook"]
TIERS = {"unit", "usecase", "rpc", "contract", "e2e", "faults", "architecture"}
EDGES = {
    "libs/jobkit/guards.py",
    "libs/servicekit/messaging/consumer.py",
    "libs/servicekit/rpc/edge.py",
    "libs/servicekit/run/loops.py",
    "libs/servicekit/run/main.py",
    "libs/servicekit/run/process.py",
    "services/publisher/publisher_service/adapters/providers/provider.py",
    "services/publisher/publisher_service/application/send_notifications.py",
    "services/publisher/publisher_service/application/settle_posts.py",
    "services/publisher/publisher_service/engine/look_ups.py",
    "services/publisher/publisher_service/engine/notifier.py",
    "services/publisher/publisher_service/engine/preparations.py",
    "services/publisher/publisher_service/engine/refreshes.py",
}
"""The RPC edge, consumers, the runner of processes and loops, the runner of jobs, a provider's adapter, single
deliveries, and single posts and turns whose answer, look or preparation cannot be recorded."""
VAGUE = ("Manager", "Helper", "Util", "Utils", "Base", "Common", "Impl")


def test_every_service_has_the_same_skeleton(package: Path) -> None:
    assert [part for part in SKELETON if not (package / part).is_file()] == []
    assert (package / "wire.py").is_file() or (package / "wire/__init__.py").is_file()
    # One store, or a module for each kind of thing.
    assert {file.name for file in (package / "adapters/postgres").glob("*.py")} > {"__init__.py", "tables.py"}


def test_every_readme_of_a_service_has_the_seven_headings(package: Path) -> None:
    text = (package.parent / "README.md").read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == HEADINGS


def test_no_folder_that_is_no_package_pretends_to_be_one(root: Path) -> None:
    pretenders = [*(root / "services").glob("*/__init__.py"), *(root / "tests").rglob("__init__.py")]
    assert [str(file.relative_to(root)) for file in (*pretenders, root / "services/__init__.py") if file.exists()] == []


def test_no_import_name_shadows_the_standard_library(root: Path) -> None:
    importable = {entry.stem for folder in roots(root) for entry in folder.iterdir() if not entry.name.startswith("_")}
    assert importable & sys.stdlib_module_names == set()


def test_no_module_is_named_like_one_of_the_standard_library(root: Path, files: list[Path]) -> None:
    risky = {"calendar", "copy", "email", "logging", "queue", "random", "select", "signal", "types"}
    named = {file for file in files if file.suffix == ".py" and {file.stem, file.parent.name} & risky}
    # `services/queue` is a folder, not a package: its own name never goes on sys.path.
    assert [str(file.relative_to(root)) for file in named if file.parent.name != "queue"] == []


def test_tests_stand_in_their_tiers(root: Path, files: list[Path]) -> None:
    """A file is named after the module it tests, so that two packages may have a file of one name."""
    tests = [file for file in files if file.is_relative_to(root / "tests") and file.name.startswith("test_")]
    assert {file.relative_to(root / "tests").parts[0] for file in tests} == TIERS


def test_a_folder_of_code_is_a_package_that_the_contracts_see(root: Path, files: list[Path]) -> None:
    """import-linter passes over a folder without `__init__.py`: code in it could import anything, and be shipped."""
    unseen = {
        str(file.parent.relative_to(root))
        for file in files
        if file.suffix == ".py" and file.parent.name != "libs" and file.is_relative_to(root / "libs")
    }
    unseen = {folder for folder in unseen if not (root / folder / "__init__.py").exists()}
    # Alembic runs these files; nothing imports them.
    assert unseen == {"libs/servicekit/pg/migrations/environment"}


def test_every_failpoint_is_declared_once_and_passed_through(root: Path, modules: Mapping[Path, ast.Module]) -> None:
    declared: dict[str, str] = {}
    for file, module in modules.items():
        if file.is_relative_to(root / "tests") or file.is_relative_to(root / "libs"):
            continue
        passed = {ast.unparse(call.args[0]) for call in calls(module, "failpoint")}
        for assignment in (node for node in ast.walk(module) if isinstance(node, ast.Assign)):
            for call in calls(assignment, "declare"):
                name = ast.literal_eval(call.args[0])
                assert name not in declared, f"{name} is declared in {declared[name]} and {file}"
                assert f"{file.relative_to(root / 'services').parts[0]}." in name, f"{name} names another service"
                assert ast.unparse(assignment.targets[0]) in passed, f"nothing passes through {name}"
                declared[name] = str(file)
    assert declared


def test_a_class_is_named_after_what_it_is(root: Path, modules: Mapping[Path, ast.Module]) -> None:
    names = {node.name for module in modules.values() for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
    assert [name for name in names if name.endswith(VAGUE)] == []


def test_unexpected_errors_end_only_at_the_supervised_edges(root: Path, modules: Mapping[Path, ast.Module]) -> None:
    """Anywhere else, code that catches everything raises again what it does not know to be passing."""
    swallowing = {
        str(file.relative_to(root))
        for file, module in modules.items()
        for handler in ast.walk(module)
        if isinstance(handler, ast.ExceptHandler)
        and (handler.type is None or ast.unparse(handler.type) in {"Exception", "BaseException"})
        and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        and not file.is_relative_to(root / "tests")
    }
    assert swallowing <= EDGES


def test_every_setting_says_what_it_is(root: Path, package: Path) -> None:
    """A comment stands beside the field, or beside the field of that name which every process has."""
    shared = described(root / "libs/servicekit/run/settings.py", "ProcessSettings")
    own = described(package / "settings.py", "Settings")
    assert [name for name, (comment, _) in own.items() if not comment and name not in shared] == []


def test_a_new_setting_has_a_default(package: Path) -> None:
    required = {"database_url", "credentials_key", "nats_url"}
    own = described(package / "settings.py", "Settings")
    assert {name for name, (_, default) in own.items() if not default} <= required


def described(file: Path, class_name: str) -> dict[str, tuple[bool, bool]]:
    """Tells of each field whether a comment stands beside it, and whether it has a default."""
    lines = file.read_text().splitlines()
    body = next(
        node.body
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and node.name == class_name
    )
    return {
        ast.unparse(field.target): ("  # " in lines[field.end_lineno - 1], field.value is not None)
        for field in body
        if isinstance(field, ast.AnnAssign) and field.end_lineno
    }


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name and node.args
    ]


def roots(root: Path) -> list[Path]:
    """Returns the folders that go on sys.path."""
    return [root / "libs", *(folder for folder in (root / "services").iterdir() if folder.is_dir())]
