"""Compiles protos written inside a test, so that protos/ holds only those of the services."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from grpc_tools import protoc

_INCLUDES = (Path(__file__).parents[2] / "protos", Path(protoc.__file__).parent / "_proto")


def compile_proto(name: str, text: str) -> Mapping[str, type[Message]]:
    """Returns a proto's top-level messages. `name` must be new in this process, and its imports loaded."""
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder, name), Path(folder, "set.binpb")
        source.write_text(text)
        arguments = ["protoc", f"-I{folder}", *(f"-I{one}" for one in _INCLUDES), f"--descriptor_set_out={compiled}"]
        assert protoc.main([*arguments, str(source)]) == 0, "protoc refused the proto"
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindFileByName(name).message_types_by_name
    return {message: message_factory.GetMessageClass(descriptor) for message, descriptor in found.items()}
