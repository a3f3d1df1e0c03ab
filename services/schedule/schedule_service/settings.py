"""Settings of the schedule service, read from POSTFLOW_SCHEDULE_<FIELD>, else POSTFLOW_<FIELD>."""

from dataclasses import dataclass

from servicekit.run import ProcessSettings, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    listen: str = "127.0.0.1:50051"  # gRPC address, host:port; port 0 = any free one
    metrics_listen: str = "127.0.0.1:9464"  # address of /metrics, host:port; port 0 = any free one
    database_url: Secret  # postgresql://user:password@host:port/database
    nats_url: str  # nats://host:port
    database_connections: int = 8  # kept open at most
