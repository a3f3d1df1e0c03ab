"""What a drafts process is told by its environment."""

from dataclasses import dataclass
from datetime import timedelta

from servicekit.run import ProcessSettings, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftsSettings(ProcessSettings):
    listen: str = "127.0.0.1:50053"
    metrics_listen: str = "127.0.0.1:9466"
    database_url: Secret  # postgresql://user:password@host:port/database
    nats_url: str = "nats://127.0.0.1:4222"
    publisher_target: str = "127.0.0.1:50054"  # gRPC target
    pool_size: int = 8  # database connections
    withdraw_deadline: timedelta = timedelta(seconds=3)  # for one call to Publisher; less than domain.draft.PATIENCE
    withdraw_period: timedelta = timedelta(seconds=1)  # between looks for withdrawals that are still to be confirmed
    housekeeping_period: timedelta = timedelta(minutes=1)
