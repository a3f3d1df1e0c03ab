"""A server whose call does nothing: what any call costs before it has done anything.

`python -m benchmarks.nothing` is a process like a service's: `run_main` with its settings, uvloop, log, telemetry and
metrics port, and one `RpcServer`. It serves `DraftsService`, of which only GetDraft is implemented, and answers with an
empty message at once. A call passes all that a call to a service passes: gRPC, decoding, the deadline, the field rules
of GetDraftRequest, request id and trace, the histogram, the line in the access log, encoding. Behind the handler there
is no database, no stream and no loop.
"""

import sys
from dataclasses import dataclass
from typing import Any

from postflow.drafts.v1 import drafts_service_pb2
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceServicer, add_DraftsServiceServicer_to_server
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer
from servicekit.run import Process
from servicekit.run.main import run_main
from servicekit.run.settings import ProcessSettings

NAME = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of every process: POSTFLOW_NOTHING_LISTEN and POSTFLOW_NOTHING_METRICS_LISTEN must be given."""


class NothingServicer(DraftsServiceServicer):
    async def GetDraft(self, _request: Any, _context: Any) -> drafts_service_pb2.GetDraftResponse:
        return drafts_service_pb2.GetDraftResponse()


def main() -> int:
    return run_main(NAME, Settings, compose)


async def compose(settings: Settings) -> Process:
    # The generated methods answer UNIMPLEMENTED.
    servicers = [(add_DraftsServiceServicer_to_server, NothingServicer())]  # type: ignore[abstract]
    return Process(
        name=NAME,
        server=RpcServer(listen=settings.listen, servicers=servicers, ids=Uuid7Source()),
        grace=settings.grace,
    )


if __name__ == "__main__":
    sys.exit(main())
