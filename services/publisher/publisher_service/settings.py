"""Settings of the Publisher process. Every field states its unit; see servicekit.run.settings for the variables."""

from dataclasses import dataclass
from datetime import timedelta

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.domain.policy import Policy
from servicekit.run.addresses import HttpUrl, NatsUrl, PostgresUrl
from servicekit.run.settings import Count, Listen, LogLevel, Period, Secret
from topology import Durables, StreamSettings

_NO_KEY = Secret("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(StreamSettings):
    database_url: PostgresUrl  # postgresql://user:password@host:port/database
    credentials_key: Secret = _NO_KEY  # 32 bytes in base64, the key `default`; for one key without a file
    credentials_keys_file: str = ""  # path of a file with a line for each key, KEY-ID BASE64-KEY; the first seals
    listen: Listen = "127.0.0.1:50054"
    metrics_listen: Listen = "127.0.0.1:9467"
    nats_url: NatsUrl = "nats://127.0.0.1:4222"  # nats://user:password@host:port
    sandbox_url: HttpUrl = "http://127.0.0.1:50060"  # of the sandbox provider
    database_connections: Count = 8  # for writing, kept open at most; half as many more for reading
    publish_durables: Durables = 1  # over how many consumers the 64 partitions are dealt; the same for every replica
    senders: Count = 64  # requests to providers at once
    request_timeout: Period = timedelta(seconds=10)  # of one request to a provider
    lease_margin: timedelta = timedelta(seconds=5)  # by which a claim outlives its request
    unknown_settle: timedelta = timedelta(minutes=2)  # before a look at the provider proves anything
    unknown_deadline: timedelta = timedelta(hours=1)  # how long an outcome is looked up before a person is asked
    lookup_again: timedelta = timedelta(seconds=30)  # after a look that proved nothing; grows with the time passed
    retry_first: timedelta = timedelta(seconds=5)  # doubling, with jitter
    retry_cap: timedelta = timedelta(minutes=15)  # the longest wait between two tries
    sweep_period: Period = timedelta(seconds=1)  # of the look at what stands still
    outcome_log_level: LogLevel | None = None  # of the lines that say what came of each post; unset: log_level

    @property
    def limits(self) -> Limits:
        """Of a provider that declares none of its own."""
        return Limits(
            request_timeout=self.request_timeout,
            unknown_settle=self.unknown_settle,
            unknown_deadline=self.unknown_deadline,
            lookup_again=self.lookup_again,
            senders=self.senders,
        )

    @property
    def policy(self) -> Policy:
        return Policy(
            retry_first=self.retry_first,
            retry_cap=self.retry_cap,
            unknown_settle=self.unknown_settle,
            unknown_deadline=self.unknown_deadline,
            lookup_again=self.lookup_again,
        )
