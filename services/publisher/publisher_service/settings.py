"""Settings of the Publisher process. Every field states its unit; see servicekit.run.settings for the variables."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from channels import Action
from publisher_service.adapters.mail.composing import Links
from publisher_service.adapters.mail.mail_url import MailUrl, Sender
from publisher_service.adapters.mail.post import MailPost, mail_post
from publisher_service.adapters.outside.urls import PrivateHosts
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.domain.limits import LimitDefaults
from publisher_service.domain.media import MediaCaps
from publisher_service.domain.policy import Policy
from servicekit.run.addresses import HttpUrl, NatsUrl, PostgresUrl
from servicekit.run.settings import Count, Listen, LogLevel, Period, Secret
from topology import Durables, StreamSettings

_NO_KEY = Secret("")
_NO_MAIL = Secret("")


def half(total: int) -> int:
    """Returns what one organization may have of something."""
    return max(total // 2, 1)


def _check_redirect_uris(value: str) -> None:
    for uri in value.split():
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
            raise ValueError(f"{uri!r} is not http(s)://host/path, without a fragment")


RedirectUris = Annotated[str, _check_redirect_uris]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(StreamSettings):
    database_url: PostgresUrl  # postgresql://user:password@host:port/database
    credentials_key: Secret = _NO_KEY  # one key without a file: 32 bytes in base64, with the id `default`
    credentials_keys_file: str = ""  # path of a file with a line KEY-ID BASE64-KEY for each key; the first key seals
    listen: Listen = "127.0.0.1:50054"
    metrics_listen: Listen = "127.0.0.1:9467"
    nats_url: NatsUrl = "nats://127.0.0.1:4222"  # nats://user:password@host:port
    sandbox_url: HttpUrl = "http://127.0.0.1:50060"  # address of the sandbox provider
    facebook_url: HttpUrl = "https://graph.facebook.com"  # address of the Graph API for pages
    instagram_url: HttpUrl = "https://graph.facebook.com"  # likewise Instagram; graph.instagram.com for its own login
    graph_version: str = "v25.0"  # version of the Graph API
    linkedin_url: HttpUrl = "https://api.linkedin.com"  # address of LinkedIn's API
    linkedin_version: str = "202610"  # version of LinkedIn's API, YYYYMM; each is served for about a year
    facebook_app_id: str = ""  # our application at Meta: its tokens are refreshed, and people may visit it to connect
    facebook_app_secret: Secret = _NO_KEY  # its secret
    facebook_more_scopes: str = ""  # permissions that people are asked for besides at Facebook, with spaces between
    facebook_dialog_url: HttpUrl = "https://www.facebook.com"  # where people visit Facebook
    instagram_app_id: str = ""  # our application at Instagram itself; none: that at Meta serves its accounts, too
    instagram_app_secret: Secret = _NO_KEY  # its secret
    instagram_more_scopes: str = ""  # likewise for Instagram accounts, by whichever login
    instagram_codes_url: HttpUrl = "https://api.instagram.com"  # where codes of Instagram's own login are exchanged
    instagram_dialog_url: str = ""  # where people visit Instagram; default: that of the login in use
    linkedin_app_id: str = ""  # our application at LinkedIn for members
    linkedin_app_secret: Secret = _NO_KEY  # its secret
    linkedin_page_app_id: str = ""  # that for pages; none: that for members serves both
    linkedin_page_app_secret: Secret = _NO_KEY  # its secret
    linkedin_more_scopes: str = ""  # scopes that people are asked for besides, with spaces between
    linkedin_sign_in_url: HttpUrl = "https://www.linkedin.com"  # where people visit LinkedIn, and tokens are issued
    telegram_url: HttpUrl = "https://api.telegram.org"  # address of the Bot API
    unipile_url: HttpUrl = "https://api1.unipile.com:13111"  # address of Unipile's API: the DSN of your subscription
    unipile_api_key: Secret = _NO_KEY  # its key, of the subscription
    network_senders: Count = 16  # requests at once to each real network, in this process; half for one organization
    network_timeout: Period = timedelta(seconds=30)  # the longest time of one request to a real network
    upload_timeout: Period = timedelta(minutes=20)  # the longest time of one step of a preparation there
    outside_private_hosts: PrivateHosts = ""  # host:port,... that users may name though private; empty in production
    database_connections: Count = 8  # for writing, kept open at most; half as many more for reading
    publish_durables: Durables = 1  # consumers that share the 64 partitions; the same in every replica
    senders: Count = 64  # requests at once to a provider, in this process; half for one organization
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
    media_image_bytes: Count = 50_000_000  # largest image that a post may have
    media_video_bytes: Count = 500_000_000  # likewise video
    media_document_bytes: Count = 100_000_000  # likewise document
    media_spool_bytes: Count = 2_000_000_000  # of files on the disk while they are used; half for one organization
    media_spool_folder: str = ""  # path where they are; default: that of temporary files
    media_fetches: Count = 16  # files fetched at once, in this process; half for one organization
    media_fetch_time: Period = timedelta(minutes=2)  # the longest time in which a file has to be there
    media_facts_life: Period = timedelta(minutes=15)  # how long what is known of a file is believed
    sweep_period: Period = timedelta(seconds=1)  # how often jobs that stand still are looked for
    redirect_uris: RedirectUris = ""  # where providers may send people back to, with spaces between; none: no visits
    watchers: Count = 1000  # most WatchPostJobs calls in flight, of which one organization has half at most
    mail_url: MailUrl = _NO_MAIL  # smtp://user:password@host, smtps://, smtp+starttls://, file:///folder; empty: off
    mail_from: Sender = "PostFlow <postflow@localhost.localdomain>"  # sender of notifications: NAME <ADDRESS>
    mails_per_hour: Count = 60  # of an organization, one by one; further notifications join a digest each hour
    notify_within: Period = timedelta(hours=24)  # nobody is notified for the first time of what is older
    mail_timeout: Period = timedelta(seconds=30)  # the longest time in which a mail is handed over
    webhook_timeout: Period = timedelta(seconds=15)  # the longest time of one request to a webhook
    reconnect_url: str = ""  # page on which people connect an account again; gets organization_id, social_account_id
    preferences_url: str = ""  # page on which people choose their notifications; gets organization_id, brand_id
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
    def network_limits(self) -> Limits:
        """The limits of real networks, which declare some of their own."""
        return replace(
            self.limits,
            request_timeout=self.network_timeout,
            prepare_timeout=self.upload_timeout,
            senders=self.network_senders,
        )

    @property
    def mail_post(self) -> MailPost | None:
        """The way out for mails; None if e-mail is off."""
        links = Links(reconnect=self.reconnect_url, preferences=self.preferences_url)
        return mail_post(self.mail_url, self.mail_from, links, timeout=self.mail_timeout)

    @property
    def limit_defaults(self) -> LimitDefaults:
        caps = {
            Action.EMAIL: self.email_cap,
            Action.MESSAGE: self.message_cap,
            Action.CONNECTION_REQUEST: self.connection_request_cap,
        }
        return LimitDefaults(caps=caps, outreach_spacing=self.outreach_spacing)

    @property
    def media_caps(self) -> MediaCaps:
        """The largest files, which have to fit into the share of one organization."""
        share = half(self.media_spool_bytes)
        return MediaCaps(
            image=min(self.media_image_bytes, share),
            video=min(self.media_video_bytes, share),
            document=min(self.media_document_bytes, share),
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
