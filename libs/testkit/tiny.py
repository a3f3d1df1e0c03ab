"""A service with three methods whose behaviour each test defines, for tests of servicekit itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
from google.protobuf import field_mask_pb2

from postflow.rules.v1 import rules_pb2
from testkit.protos import compile_proto

SERVICE = "tiny.v1.TinyService"

_IMPORTED = (field_mask_pb2, rules_pb2)
_MESSAGES = compile_proto(
    "tiny.proto",
    """
    syntax = "proto3";
    package tiny.v1;
    import "google/protobuf/field_mask.proto";
    import "postflow/rules/v1/rules.proto";
    service TinyService {
      rpc Echo(EchoRequest) returns (EchoResponse);
      rpc Watch(EchoRequest) returns (stream EchoResponse);
      rpc Forgotten(EchoRequest) returns (EchoResponse);
    }
    message Note {
      string title = 1 [(postflow.rules.v1.rules) = {max_len: 10}];
      string body = 2;
    }
    message EchoRequest {
      string organization_id = 1 [(postflow.rules.v1.rules) = {required: true id: true}];
      string text = 2;
      Note note = 3;
      google.protobuf.FieldMask update_mask = 4;
      int32 page_size = 5;
      string page_token = 6;
    }
    message EchoResponse { string text = 1; }
    message OtherRequest {
      string organization_id = 1;
      string text = 2;
      int32 page_size = 5;
      string page_token = 6;
    }
    """,
)
EchoRequest: Any = _MESSAGES["EchoRequest"]
EchoResponse: Any = _MESSAGES["EchoResponse"]
OtherRequest: Any = _MESSAGES["OtherRequest"]  # on the wire like EchoRequest
Note: Any = _MESSAGES["Note"]

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Answer = Callable[[Any, Context], Awaitable[Any]]
Watch = Callable[[Any, Context], AsyncIterator[Any]]


async def echo(request: Any, _context: Context) -> Any:
    return EchoResponse(text=request.text)


async def watch(request: Any, _context: Context) -> AsyncIterator[Any]:
    for word in request.text.split():
        yield EchoResponse(text=word)


class TinyServicer:
    def __init__(self, answer: Answer = echo, watch: Watch = watch) -> None:
        self._answer = answer
        self._watch = watch

    async def Echo(self, request: Any, context: Context) -> Any:
        return await self._answer(request, context)

    async def Watch(self, request: Any, context: Context) -> AsyncIterator[Any]:
        async for response in self._watch(request, context):
            yield response

    def Forgotten(self, _request: Any, context: Context) -> Any:
        """Answers as a generated servicer does for a method that is not implemented."""
        context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        raise NotImplementedError("Method not implemented!")


def add_tiny_servicer(servicer: TinyServicer, server: Any) -> None:
    kinds = {
        "Echo": grpc.unary_unary_rpc_method_handler,
        "Watch": grpc.unary_stream_rpc_method_handler,
        "Forgotten": grpc.unary_unary_rpc_method_handler,
    }
    handlers = {
        name: kind(
            getattr(servicer, name),
            request_deserializer=EchoRequest.FromString,
            response_serializer=EchoResponse.SerializeToString,
        )
        for name, kind in kinds.items()
    }
    server.add_registered_method_handlers(SERVICE, handlers)


class TinyStub:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        serialize, parse = EchoRequest.SerializeToString, EchoResponse.FromString
        self.Echo: Any = channel.unary_unary(f"/{SERVICE}/Echo", serialize, parse)
        self.Watch: Any = channel.unary_stream(f"/{SERVICE}/Watch", serialize, parse)
        self.Forgotten: Any = channel.unary_unary(f"/{SERVICE}/Forgotten", serialize, parse)


def request(text: str = "", **fields: Any) -> Any:
    """Makes a valid request."""
    return EchoRequest(organization_id="acme", text=text, **fields)
