"""The protos are generated freshly, explained, safe to repeat, and served."""

import importlib
import inspect
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from servicekit.ops import servicer as operations

# Field numbers in descriptor.proto, by which a comment names what it is about.
MESSAGE, ENUM, SERVICE, FIELD, NESTED, VALUE, METHOD = 4, 5, 6, 2, 3, 2, 2


@pytest.fixture(scope="module")
def protos(root: Path) -> list[FileDescriptorProto]:
    shipped = FileDescriptorSet.FromString((root / "libs/postflow/postflow.binpb").read_bytes())
    return [file for file in shipped.file if file.package.startswith("postflow.")]


def test_generated_code_is_what_the_protos_generate(root: Path, tmp_path: Path) -> None:
    subprocess.run([root / "tools/generate", tmp_path], cwd=root, check=True, capture_output=True)
    assert contents(tmp_path / "postflow") == contents(root / "libs/postflow")


def test_everything_in_the_protos_is_explained(protos: list[FileDescriptorProto]) -> None:
    """`grpcurl describe` shows the comments of the shipped descriptor set."""
    silent = []
    for file in protos:
        said = {tuple(place.path) for place in file.source_code_info.location if place.leading_comments.strip()}
        silent += [f"{file.name}: {name}" for path, name in declared(file) if path not in said]
    assert silent == []


def test_the_details_of_errors_are_readable_with_the_shipped_descriptors(root: Path) -> None:
    """`grpcurl -protoset` would otherwise show the reason and the wrong fields as base64."""
    shipped = FileDescriptorSet.FromString((root / "libs/postflow/postflow.binpb").read_bytes())
    known = {f"{file.package}.{message.name}" for file in shipped.file for message in file.message_type}
    assert known >= {"google.rpc.ErrorInfo", "google.rpc.BadRequest", "google.rpc.RetryInfo"}


def test_health_and_reflection_can_be_called_with_the_shipped_descriptors(root: Path) -> None:
    shipped = FileDescriptorSet.FromString((root / "libs/postflow/postflow.binpb").read_bytes())
    assert {"grpc.health.v1", "grpc.reflection.v1alpha"} <= {file.package for file in shipped.file}


def test_every_request_begins_with_its_tenant(protos: list[FileDescriptorProto]) -> None:
    requests = [message for file in protos for message in file.message_type if message.name.endswith("Request")]
    assert requests
    assert [message.name for message in requests if message.field[0].name != "organization_id"] == []
    assert [message.name for message in requests if message.field[0].number != 1] == []


def test_every_change_can_be_repeated_safely(protos: list[FileDescriptorProto]) -> None:
    """A `request_id` distinguishes a repeat from a second call. Calls that only read, only raise a number, or finish
    what remains need none."""
    calls = (
        "Get",
        "List",
        "Find",
        "Check",
        "Explain",
        "Plan",
        "Validate",
        "Inspect",
        "Watch",
        "Withdraw",
        "Apply",
        "Redrive",
        "Archive",
    )
    # Consumers know each announcement by its version.
    harmless = (*calls, "Replay")
    for file in protos:
        fields = {message.name: {field.name for field in message.field} for message in file.message_type}
        for method in (method for service in file.service for method in service.method):
            request = method.input_type.rsplit(".", 1)[1]
            assert method.name.startswith(harmless) or "request_id" in fields[request], method.name


def test_what_can_be_repeated_goes_through_the_ledger(root: Path, protos: list[FileDescriptorProto]) -> None:
    """A `request_id` that no ledger looks at would be a promise that nobody keeps."""
    checked = 0
    for file in protos:
        fields = {message.name: {field.name for field in message.field} for message in file.message_type}
        for service in file.service:
            context = file.package.split(".")[1]
            if context == "ops":
                continue
            generated = importlib.import_module(file.name.removesuffix(".proto").replace("/", ".") + "_pb2_grpc")
            servicer = implementation(entrypoints(root, context), getattr(generated, f"{service.name}Servicer"))
            for method in service.method:
                if "request_id" in fields[method.input_type.rsplit(".", 1)[1]]:
                    assert "mutation(request, " in inspect.getsource(getattr(servicer, method.name)), method.name
                    checked += 1
    assert checked > 12


def test_every_rpc_is_served(root: Path, protos: list[FileDescriptorProto]) -> None:
    for file in protos:
        for service in file.service:
            context = file.package.split(".")[1]
            generated = importlib.import_module(file.name.removesuffix(".proto").replace("/", ".") + "_pb2_grpc")
            unserved = getattr(generated, f"{service.name}Servicer")
            servicer = implementation(entrypoints(root, context) if context != "ops" else [operations], unserved)
            missing = [rpc.name for rpc in service.method if not own(servicer, rpc.name, unserved)]
            assert missing == [], f"{service.name} leaves these to the generated code"
            for main, registration in registrations(root, context, service.name):
                assert registration in main


def registrations(root: Path, context: str, service: str) -> Iterator[tuple[str, str]]:
    """Yields each `main` that must serve it, with what registers it there: the backbone adds OperationsService."""
    if context == "ops":
        for main in root.glob("services/*/*_service/main.py"):
            yield main.read_text(), "Backbone("
    else:
        main = root / f"services/{context}/{context}_service/main.py"
        yield main.read_text(), f"add_{service}Servicer_to_server"


def declared(file: FileDescriptorProto) -> Iterator[tuple[tuple[int, ...], str]]:
    for s, service in enumerate(file.service):
        yield (SERVICE, s), service.name
        for m, method in enumerate(service.method):
            yield (SERVICE, s, METHOD, m), f"{service.name}.{method.name}"
    for i, message in enumerate(file.message_type):
        yield from declared_in(message, (MESSAGE, i))
    for e, enum in enumerate(file.enum_type):
        yield (ENUM, e), enum.name
        for v, value in enumerate(enum.value):
            if value.number:
                yield (ENUM, e, VALUE, v), f"{enum.name}.{value.name}"


def declared_in(message: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    yield path, message.name
    for f, field in enumerate(message.field):
        yield (*path, FIELD, f), f"{message.name}.{field.name}"
    for n, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            yield from declared_in(nested, (*path, NESTED, n))


def entrypoints(root: Path, context: str) -> list[Any]:
    """Imports `rpc.py`, and the modules beside it where a context has servicers that share nothing."""
    folder = root / f"services/{context}/{context}_service/entrypoints"
    return [importlib.import_module(f"{context}_service.entrypoints.{file.stem}") for file in folder.glob("*rpc.py")]


def implementation(modules: list[Any], unserved: type) -> type:
    found = [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, unserved) and each is not unserved
    ]
    assert len(found) == 1, f"one class serves {unserved.__name__}"
    return found[0]


def own(servicer: type, method: str, unserved: type) -> bool:
    return getattr(servicer, method) is not getattr(unserved, method)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
