"""Settings of a Queue process, read from POSTFLOW_QUEUE_<FIELD>, or else from POSTFLOW_<FIELD>."""

from dataclasses import dataclass
from datetime import timedelta

from queue_service.domain.policy import MOST_LEAD, Policy
from servicekit.run.addresses import NatsUrl, PostgresUrl
from servicekit.run.settings import Count, Listen
from topology import Durables, StreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(StreamSettings):
    listen: Listen = "127.0.0.1:50052"
    metrics_listen: Listen = "127.0.0.1:9465"
    database_url: PostgresUrl  # postgresql://user:password@host:port/database
    database_connections: Count = 8  # most connections for writing; for reading, half as many more
    nats_url: NatsUrl = "nats://127.0.0.1:4222"  # nats://user:password@host:port
    schedule_target: str = "127.0.0.1:50051"  # gRPC target of ScheduleService
    drafts_target: str = "127.0.0.1:50053"  # gRPC target of DraftsService
    publisher_target: str = "127.0.0.1:50054"  # gRPC target of SocialAccountService

    notice: timedelta = timedelta(seconds=60)  # the nearest slot time that AddToQueue gives
    lead: timedelta = timedelta(seconds=30)  # slots are dispatched to Publisher this long before they are due
    late_limit: timedelta = timedelta(
        hours=24
    )  # a post that could not be sent within this time after its slot is missed
    max_attempts: Count = 5  # most attempts in one run of a post job
    slot_times_cached: Count = 100_000  # most slot times in memory, for all accounts together

    watchers: Count = 1000  # most WatchQueue calls in flight, of which one organization has half at most

    publish_durables: Durables = 1  # the number of durables that share the PUBLISH stream
    outstanding_limit: Count = 10_000  # most outstanding commands per durable; beyond it Queue sends no more
    dispatch_batch: Count = 500  # most slots claimed, or repeated, in one transaction
    dispatch_pool: Count = 2000  # number of the oldest due accounts from which a batch is chosen fairly
    dispatch_per_account: Count = 4  # most slots of one account in one batch
    open_slots_per_account: Count = 100  # most slots of one account without Publisher's answer
    organization_share: float = 0.5  # largest share of the outstanding commands for one organization

    @property
    def policy(self) -> Policy:
        return Policy(
            notice=self.notice,
            lead=self.lead,
            late_limit=self.late_limit,
            batch=self.dispatch_batch,
            pool=self.dispatch_pool,
            per_account=self.dispatch_per_account,
            open_slots=self.open_slots_per_account,
        )

    def __post_init__(self) -> None:
        if not 0 < self.organization_share <= 1:
            raise ValueError("organization_share must lie between 0 and 1")
        if self.lead > MOST_LEAD:
            raise ValueError("lead must not be longer than a day")
