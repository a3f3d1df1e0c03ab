"""A provider as the application knows it: an adapter behind a guard.

Each call of an adapter ends in time, with a value that can be stored: a bug in one adapter must not end the process,
which sends for all the others too.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any, Final, TypeVar, final

from opentelemetry import metrics

from channels.rules import ChannelRules
from publisher_service.adapters.providers.adapter import (
    Adapter,
    CredentialsRefused,
    Limits,
    Post,
    PreparingAdapter,
    Proof,
    ProviderDown,
)
from publisher_service.adapters.providers.credentials import (
    OAuth,
    SettingsCheck,
    TokenSource,
    sound_grant,
    sound_refresh,
)
from publisher_service.adapters.providers.texts import (
    LONGEST_HANDLE,
    LONGEST_NAME,
    is_name,
    storable,
    without_secret,
    without_secrets,
)
from publisher_service.adapters.providers.time_limit import TimeLimit
from publisher_service.domain.connecting import GrantAnswer, GrantDelayed
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    FINDINGS,
    OUTCOMES,
    Accepted,
    Ambiguous,
    Finding,
    Found,
    NoProof,
    Outcome,
    Quota,
    RateLimited,
    label,
)
from publisher_service.domain.policy import Policy
from publisher_service.domain.preparation import PREPARING, Delayed, Preparing, Processing, Ready
from publisher_service.domain.refresh import RefreshAnswer, RefreshDelayed, RefreshRefused
from servicekit.clock import Clock
from servicekit.faults import InvalidField
from servicekit.run.histograms import Histogram

_log = logging.getLogger(__name__)

T = TypeVar("T")

# Time for an adapter to notice its own timeout.
_MARGIN: Final = timedelta(milliseconds=400)
_LONGEST_TEXT: Final = 2000
_SHORTEST_WAIT: Final = timedelta(seconds=1)
_LONGEST_WAIT: Final = timedelta(hours=24)
_FAILED: Final = "ADAPTER_FAILED"

_meter = metrics.get_meter(__name__)
_latency = Histogram(
    "postflow.publish.provider_latency",
    scope=__name__,
    unit="s",
    description="Duration of a call to a provider, by operation and outcome",
    labels=["provider", "operation", "outcome"],
    bounds=[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30],
)
_failures = _meter.create_counter(
    "postflow.publish.adapter_failures", description="Calls in which an adapter raised, hung, or returned nonsense"
)


@final
class Provider:
    def __init__(self, adapter: Adapter, clock: Clock) -> None:
        self.name = adapter.name
        self.rules = adapter.rules
        self.channels = tuple(adapter.rules)
        self.limits: Limits = adapter.limits
        self._adapter = adapter
        self._clock = clock
        self._limit = TimeLimit(self.time_limit)
        self._prepare_limit = TimeLimit(adapter.limits.prepare_timeout + _MARGIN)
        self.proof: Proof = adapter.proof
        # A post is prepared before it is published.
        self.prepares: bool = isinstance(adapter, PreparingAdapter)
        self._token_source: TokenSource | None = getattr(adapter, "token_source", None)
        self._oauth: OAuth | None = getattr(adapter, "oauth", None)
        self._check_settings: SettingsCheck | None = getattr(adapter, "check_settings", None)
        self.unknown_account: str = getattr(adapter, "unknown_account", "")
        for operation in ("verify", "send", "look", "prepare", "refresh", "exchange", "authorize", "settings"):
            _failures.add(0, {"provider": self.name, "operation": operation})

    @property
    def time_limit(self) -> timedelta:
        """The time after which every call has ended, but for the steps of a preparation."""
        return self.limits.request_timeout + _MARGIN

    def policy(self, common: Policy) -> Policy:
        """Returns the common policy with the numbers of this provider."""
        limits = self.limits
        return replace(
            common,
            unknown_settle=limits.unknown_settle,
            unknown_deadline=limits.unknown_deadline,
            lookup_again=limits.lookup_again,
            last_look=2 * self.time_limit,
        )

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Checks credentials. Raises CredentialsRefused or ProviderDown, nothing else."""
        started = self._clock.monotonic()
        try:
            await _in_time(
                self._limit, self._adapter.verify(organization_id, external_account_id, credentials, settings)
            )
        except CredentialsRefused as refusal:
            self._took(started, "verify", "refused")
            raise CredentialsRefused(without_secrets(str(refusal), credentials.secrets)) from None
        except ProviderDown:
            self._took(started, "verify", "away")
            raise
        except Exception as error:  # noqa: BLE001 - a defect of an adapter is no crash
            self._failed("verify", error)
            self._took(started, "verify", "failed")
            raise ProviderDown("the adapter failed") from None
        self._took(started, "verify", "accepted")

    async def send(self, post: Post) -> Outcome:
        """Makes one request. A failure of the adapter is Ambiguous: it may have sent."""
        started = self._clock.monotonic()
        try:
            outcome = _sound_outcome(await _in_time(self._limit, self._adapter.send(post)), post.access_token)
        except Exception as error:  # noqa: BLE001 - a failed adapter may have sent: that is an outcome
            self._failed("send", error)
            outcome = Ambiguous(reason=_FAILED, message=f"the adapter failed with {type(error).__name__}")
        self._took(started, "send", label(outcome))
        return outcome

    async def look(self, post: Post) -> Finding:
        """Looks a post up. A failure of the adapter proves nothing."""
        started = self._clock.monotonic()
        try:
            finding = _sound_finding(await _in_time(self._limit, self._adapter.look(post)), post.access_token)
        except Exception as error:  # noqa: BLE001 - a failed adapter has proven nothing
            self._failed("look", error)
            finding = NoProof(message=f"the adapter failed with {type(error).__name__}")
        self._took(started, "look", label(finding))
        return finding

    async def prepare(self, post: Post) -> Preparing:
        """Has a post prepared, or asks how far the one is that has this handle. A failure of the adapter is Delayed."""
        adapter = self._adapter
        assert isinstance(adapter, PreparingAdapter), "only posts of such providers are prepared"
        started = self._clock.monotonic()
        try:
            call = adapter.check(post) if post.handle else adapter.prepare(post)
            found = _sound_preparing(await _in_time(self._prepare_limit, call), post.access_token)
        except Exception as error:  # noqa: BLE001 - a failed adapter has prepared nothing that is known
            self._failed("prepare", error)
            found = Delayed(message=f"the adapter failed with {type(error).__name__}")
        self._took(started, "prepare", type(found).__name__.lower())
        return found

    @property
    def is_rotating(self) -> bool:
        """Returns whether a refresh token is good for one use."""
        return self._token_source is not None and self._token_source.is_rotating

    @property
    def refresh_ahead(self) -> timedelta:
        return timedelta(0) if self._token_source is None else self._token_source.refresh_ahead

    @property
    def grants_access(self) -> bool:
        """Returns whether a person may visit the provider to connect an account."""
        return self._oauth is not None

    @property
    def scopes(self) -> tuple[str, ...]:
        return () if self._oauth is None else self._oauth.scopes

    @property
    def proves_owners(self) -> bool:
        """Returns whether credentials prove whose an account is; if not, it is that of the first to connect it."""
        return not self.unknown_account

    def can_refresh(self, credentials: Credentials) -> bool:
        return self._token_source is not None and self._token_source.can_refresh(credentials)

    async def refresh(
        self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> RefreshAnswer:
        """Gets the next access token. A failure of the adapter is RefreshDelayed."""
        if self._token_source is None or not self._token_source.can_refresh(credentials):
            return RefreshRefused(message="nothing is stored that could refresh the credentials")
        started = self._clock.monotonic()
        try:
            call = self._token_source.refresh(external_account_id, credentials, settings)
            answer = sound_refresh(await _in_time(self._limit, call), credentials)
        except Exception as error:  # noqa: BLE001 - a failed adapter has proven nothing
            self._failed("refresh", error)
            answer = RefreshDelayed(message=f"the adapter failed with {type(error).__name__}")
        self._took(started, "refresh", type(answer).__name__.lower())
        return answer

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        """Returns the page that a person visits to grant access. Raises ProviderDown if the adapter fails."""
        assert self._oauth is not None
        try:
            return self._oauth.authorization_url(state, challenge, redirect_uri)
        except Exception as error:  # noqa: BLE001 - a defect of an adapter is no crash
            self._failed("authorize", error)
            raise ProviderDown("the adapter failed") from None

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> GrantAnswer:
        """Presents an authorization code, once. A failure of the adapter is GrantDelayed."""
        assert self._oauth is not None
        started = self._clock.monotonic()
        try:
            call = self._oauth.exchange(code, verifier, redirect_uri)
            answer = sound_grant(await _in_time(self._limit, call), (code, verifier), self.channels)
        except Exception as error:  # noqa: BLE001 - a failed adapter may have presented the code
            self._failed("exchange", error)
            answer = GrantDelayed(message=f"the adapter failed with {type(error).__name__}")
        self._took(started, "exchange", type(answer).__name__.lower())
        return answer

    def check_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the settings of an account as they are to be stored. Raises InvalidField or ProviderDown."""
        if self._check_settings is None:
            for name in settings:
                raise InvalidField(f"settings.{name}", f"{self.name} has no settings", reason="UNKNOWN_SETTING")
            return {}
        try:
            return dict(self._check_settings(settings))
        except InvalidField:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of an adapter is no crash
            self._failed("settings", error)
            raise ProviderDown("the adapter failed") from None

    def _took(self, started: float, operation: str, outcome: str) -> None:
        _latency.record(self._clock.monotonic() - started, self.name, operation, outcome)

    def _failed(self, operation: str, error: Exception) -> None:
        _failures.add(1, {"provider": self.name, "operation": operation})
        _log.error("the adapter of %s failed in %s", self.name, operation, exc_info=error)


class Providers:
    """The providers that this release has."""

    def __init__(self, adapters: Sequence[Adapter], clock: Clock) -> None:
        self._known: Mapping[str, Provider] = {adapter.name: Provider(adapter, clock) for adapter in adapters}

    def get(self, name: str) -> Provider | None:
        """Returns None for a provider that only another release has."""
        return self._known.get(name)

    def __getitem__(self, name: str) -> Provider:
        """Returns a provider for which a post was claimed: nothing is claimed for one that this release lacks."""
        return self._known[name]

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._known.values())

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._known)

    @property
    def rules(self) -> Mapping[str, Mapping[str, ChannelRules]]:
        """Returns the rules by provider and channel."""
        return {name: self._known[name].rules for name in self.names}


class _Nonsense(Exception):
    """An adapter broke its contract: it returned no outcome, or cancelled its own call."""


async def _in_time(limit: TimeLimit, call: Coroutine[Any, Any, T]) -> T:
    try:
        return await limit.run(call)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Not this task was cancelled, but something that the adapter waited for. That must not end a sender.
        raise _Nonsense("cancelled by itself") from error


def _sound_outcome(outcome: object, token: str) -> Outcome:
    if not isinstance(outcome, OUTCOMES) or type(outcome) not in OUTCOMES:
        raise _Nonsense(f"not an outcome: {type(outcome).__name__}")
    if isinstance(outcome, Accepted | RateLimited | Ambiguous) and outcome.quotas:
        outcome = replace(outcome, quotas=tuple(map(_bounded, outcome.quotas)))
    if isinstance(outcome, Accepted):
        return _named(outcome, token)
    if isinstance(outcome, RateLimited):
        outcome = replace(outcome, retry_after=min(max(outcome.retry_after, _SHORTEST_WAIT), _LONGEST_WAIT))
    return _storable(outcome, token)


def _bounded(quota: Quota) -> Quota:
    """Returns the quota with a wait that can be added to a time. After the longest one, an answer says it again."""
    return replace(quota, reset_after=min(max(quota.reset_after, timedelta(0)), _LONGEST_WAIT))


def _sound_finding(finding: object, token: str) -> Finding:
    if not isinstance(finding, FINDINGS) or type(finding) not in FINDINGS:
        raise _Nonsense(f"not a finding: {type(finding).__name__}")
    return _named(finding, token) if isinstance(finding, Found) else _storable(finding, token)


def _sound_preparing(preparing: object, token: str) -> Preparing:
    if not isinstance(preparing, PREPARING) or type(preparing) not in PREPARING:
        raise _Nonsense(f"not a preparation: {type(preparing).__name__}")
    if isinstance(preparing, Processing | Ready) and not _is_kept(preparing.handle, token, most=LONGEST_HANDLE):
        raise _Nonsense("what is prepared has no name that can be kept")
    if isinstance(preparing, Delayed) and preparing.retry_after is not None:
        wait = min(max(preparing.retry_after, _SHORTEST_WAIT), _LONGEST_WAIT)
        preparing = replace(preparing, retry_after=wait)
    return _storable(preparing, token)


def _is_kept(name: str, token: str, *, most: int = LONGEST_NAME) -> bool:
    """Returns whether the name can be stored unchanged; one that repeats the token would be announced with it."""
    return is_name(name, most=most) and without_secret(name, token) == name


Evidence = TypeVar("Evidence", Accepted, Found)


def _named(proof: Evidence, token: str) -> Evidence:
    """Returns the proof with storable texts. A name that cannot be stored unchanged proves nothing."""
    if not _is_kept(proof.external_id, token) or not _is_kept(proof.own_id or proof.external_id, token):
        raise _Nonsense("the post has no name that can be kept")
    if proof.publish_time is not None and proof.publish_time.tzinfo is None:
        proof = replace(proof, publish_time=None)
    return _storable(proof, token)


Value = TypeVar("Value")


# The fields of each outcome, finding and preparation that hold text; names are kept as they are, or not at all.
_NAMES: Final = frozenset({"external_id", "own_id", "handle"})
_TEXTS: Final = {
    kind: tuple(field.name for field in fields(kind) if field.type is str and field.name not in _NAMES)
    for kind in {*OUTCOMES, *FINDINGS, *PREPARING}
}


def _storable(value: Value, token: str) -> Value:
    """Returns the value with texts as they may be stored, logged and shown: a provider may repeat the token."""
    changes: dict[str, str] = {}
    for name in _TEXTS[type(value)]:
        text = getattr(value, name)
        if (kept := without_secret(storable(text), token)[:_LONGEST_TEXT]) != text:
            changes[name] = kept
    return replace(value, **changes) if changes else value  # type: ignore[type-var]
