"""gRPC: the server with its edge, channels to other services, faults as statuses, pages."""

from servicekit.rpc.channel import open_channel
from servicekit.rpc.edge import MAX_SENT_BYTES, MAX_TAKEN_BYTES, Sizes
from servicekit.rpc.paging import Page, next_page_token, read_page, read_resume_token, resume_token
from servicekit.rpc.server import CannotListen, RpcServer
from servicekit.rpc.status import calling, fault_from_error

__all__ = [
    "MAX_SENT_BYTES",
    "MAX_TAKEN_BYTES",
    "CannotListen",
    "Page",
    "RpcServer",
    "Sizes",
    "calling",
    "fault_from_error",
    "next_page_token",
    "open_channel",
    "read_page",
    "read_resume_token",
    "resume_token",
]
