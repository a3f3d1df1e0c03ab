"""Settings of the Publisher process. Every field states its unit; see servicekit.run.settings for the variables."""

from dataclasses import dataclass
from datetime import timedelta

from channels import Action
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.domain.limits import LimitDefaults
from publisher_service.domain.policy import Policy
from servicekit.run.addresses import HttpUrl, NatsUrl, PostgresUrl
from servicekit.run.settings import Count, Listen, LogLevel, Period, Secret
from topology import Durables, StreamSettings

_NO_KEY = Secret("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(StreamSettings):
    database_url: PostgresUrl  # postgresql://user:password@host:port/database
    credentials_key: Secret = _NO_KEY  # one key without a file: 32 bytes in base64, with the id `default`
    credentials_keys_file: str = ""  # path of a file with a line KEY-ID BASE64-KEY for each key; the first key seals
    listen: Listen = "127.0.0.1:50054"
    metrics_listen: Listen = "127.0.0.1:9467"
    nats_url: NatsUrl = "nats://127.0.0.1:4222"  # nats://user:password@host:port
    sandbox_url: HttpUrl = "http://127.0.0.1:50060"  # address of the sandbox provider
    database_connections: Count = 8  # for writing, kept open at most; half as many more for reading
    publish_durables: Durables = 1  # consumers that share the 64 partitions; the same in every replica
    senders: Count = 64  # requests at once to a provider, in this process
    request_timeout: Period = timedelta(seconds=10)  # the longest time of one request to a provider
    lease_margin: timedelta = timedelta(seconds=5)  # how much longer than its request a claim lasts
    unknown_settle: timedelta = timedelta(minutes=2)  # wait before the first look: until then a look proves nothing
    unknown_deadline: timedelta = timedelta(hours=1)  # how long an outcome is looked up before a person is asked
    lookup_again: timedelta = timedelta(seconds=30)  # shortest wait after a look that proved nothing; grows with time
    prepare_ahead: timedelta = timedelta(minutes=15)  # how long before its time a provider is to prepare a post
    check_again: timedelta = timedelta(seconds=5)  # shortest wait before a provider is asked how far a post is
    retry_first: timedelta = timedelta(seconds=5)  # wait before the first retry; doubles with each, with jitter
    retry_cap: timedelta = timedelta(minutes=15)  # longest wait before a retry
    release_rate: Count = 500  # posts that start again per second after the release of a hold wider than an account
    email_cap: Count = 20  # e-mails of an account in a local day, unless it has a cap of its own
    message_cap: Count = 50  # likewise direct messages
    connection_request_cap: Count = 20  # likewise requests to connect
    outreach_spacing: timedelta = timedelta(minutes=6)  # from the end of one outreach message of an account to the next
    sweep_period: Period = timedelta(seconds=1)  # how often jobs that stand still are looked for
    watchers: Count = 1000  # most WatchPostJobs calls in flight, of which one organization has half at most
    outcome_log_level: LogLevel | None = None  # level of the lines about outcomes of posts; default: log_level

    @property
    def limits(self) -> Limits:
        """The limits of a provider that declares none of its own."""
        return Limits(
            request_timeout=self.request_timeout,
            unknown_settle=self.unknown_settle,
            unknown_deadline=self.unknown_deadline,
            lookup_again=self.lookup_again,
            senders=self.senders,
            check_again=self.check_again,
        )

    @property
    def limit_defaults(self) -> LimitDefaults:
        caps = {
            Action.EMAIL: self.email_cap,
            Action.MESSAGE: self.message_cap,
            Action.CONNECTION_REQUEST: self.connection_request_cap,
        }
        return LimitDefaults(caps=caps, outreach_spacing=self.outreach_spacing)

    @property
    def policy(self) -> Policy:
        return Policy(
            retry_first=self.retry_first,
            retry_cap=self.retry_cap,
            unknown_settle=self.unknown_settle,
            unknown_deadline=self.unknown_deadline,
            lookup_again=self.lookup_again,
        )
