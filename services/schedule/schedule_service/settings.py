"""Settings of a Schedule process, read from POSTFLOW_SCHEDULE_<FIELD>, or else from POSTFLOW_<FIELD>."""

from dataclasses import dataclass
from datetime import timedelta

from servicekit.run.addresses import NatsUrl, PostgresUrl
from servicekit.run.settings import Count, Listen, Period
from topology import StreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(StreamSettings):
    listen: Listen = "127.0.0.1:50051"  # gRPC address, host:port; port 0 = any free one
    metrics_listen: Listen = "127.0.0.1:9464"  # address of /metrics, host:port; port 0 = any free one
    database_url: PostgresUrl  # postgresql://user:password@host:port/database
    nats_url: NatsUrl  # nats://host:port
    database_connections: Count = 8  # most connections for writing; for reading, half as many more
    timer_poll: Period = timedelta(
        seconds=1
    )  # at most this late, another replica notices a new timer that is due at once
    timer_batch: Count = 200  # most timers fired in one transaction
    timer_lock: Period = timedelta(
        seconds=10
    )  # after this, other replicas fire the timers that a dead process had locked
