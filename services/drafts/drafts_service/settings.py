"""Settings of a Drafts process, read from POSTFLOW_DRAFTS_<FIELD>, or else from POSTFLOW_<FIELD>."""

from dataclasses import dataclass
from datetime import timedelta

from servicekit.run.addresses import NatsUrl, PostgresUrl
from servicekit.run.settings import Count, Listen, Period
from topology import StreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(StreamSettings):
    listen: Listen = "127.0.0.1:50053"  # gRPC address, host:port; port 0 = any free one
    metrics_listen: Listen = "127.0.0.1:9466"  # address of /metrics, host:port; port 0 = any free one
    database_url: PostgresUrl  # postgresql://user:password@host:port/database
    nats_url: NatsUrl  # nats://host:port
    publisher_target: str = "127.0.0.1:50054"  # gRPC target
    database_connections: Count = 8  # most connections for writing; for reading, half as many more
    withdraw_deadline: timedelta = timedelta(seconds=3)  # of one WithdrawContent call; less than domain.draft.PATIENCE
    account_deadline: timedelta = timedelta(milliseconds=500)  # of one GetAccount call, for an account without events
    media_deadline: timedelta = timedelta(seconds=6)  # of all InspectMedia calls about a draft, which wait for fetches
    withdraw_period: Period = timedelta(seconds=1)  # between searches for withdrawals whose caller has gone
    housekeeping_period: Period = timedelta(minutes=1)  # between clean-ups of expired rows
