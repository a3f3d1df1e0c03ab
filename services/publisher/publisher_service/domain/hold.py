"""Holds: what keeps posts from starting, and the order of puts and releases."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from servicekit.faults import InvalidField, NotFound, Refused


class Scope(StrEnum):
    """A kind of thing that a hold covers."""

    ACCOUNT = "ACCOUNT"
    # The whole of it: such a hold has no `scope_id`.
    ORGANIZATION = "ORGANIZATION"
    BRAND = "BRAND"
    CAMPAIGN = "CAMPAIGN"
    # The organization's accounts at one provider.
    PROVIDER = "PROVIDER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    organization_id: str
    id: str
    # A `Scope`, or plain text that only a newer release knows; empty for the release of a hold that was never put.
    scope: str = ""
    scope_id: str = ""
    revision: int
    reason: str = ""
    holder: str = ""
    in_force: bool
    create_time: datetime
    update_time: datetime
    # When it ends by itself.
    end_time: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedHold:
    """A hold that is to be put; revision 0 means the next one."""

    organization_id: str
    id: str
    scope: Scope
    scope_id: str
    revision: int
    reason: str
    holder: str
    end_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A hold in force, and the post jobs that it covers and that are being sent or may be out: the first, and all."""

    hold: Hold
    in_flight: tuple[str, ...]
    in_flight_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldFilter:
    """Selects holds of an organization that are in force; empty fields admit all.

    An account admits those that cover it, by its own id, its provider or its organization.
    """

    organization_id: str
    social_account_id: str = ""
    scopes: tuple[Scope, ...] = ()
    scope_id: str = ""


def put(known: Hold | None, wanted: WantedHold, *, now: datetime) -> Hold:
    """Returns the hold in force; the same one if this put is known already. Refuses an end that has come."""
    if known is not None:
        _require_scope(known, wanted)
        if known.in_force and known.revision == wanted.revision:
            return known
    revision = _next_revision(known, wanted.revision)
    if wanted.end_time is not None and wanted.end_time <= now:
        raise InvalidField("end_time", "must be in the future")
    return Hold(
        organization_id=wanted.organization_id,
        id=wanted.id,
        scope=wanted.scope,
        scope_id=wanted.scope_id,
        revision=revision,
        reason=wanted.reason,
        holder=wanted.holder,
        in_force=True,
        # A release that came before the first put has no scope, and was no hold.
        create_time=known.create_time if known is not None and known.scope else now,
        update_time=now,
        end_time=wanted.end_time,
    )


def released(known: Hold | None, organization_id: str, hold_id: str, revision: int, *, now: datetime) -> Hold:
    """Returns the hold released; the same one if this release is known already.

    The release of an unknown hold is kept if it has a revision: an older put may come later.
    """
    if known is None:
        if not revision:
            raise NotFound("HOLD_NOT_FOUND", "there is no such hold", metadata={"hold_id": hold_id})
        return Hold(
            organization_id=organization_id,
            id=hold_id,
            revision=revision,
            in_force=False,
            create_time=now,
            update_time=now,
        )
    if not known.in_force and revision in (0, known.revision):
        return known
    return replace(known, revision=_next_revision(known, revision), in_force=False, update_time=now)


def _next_revision(known: Hold | None, wanted: int) -> int:
    current = 0 if known is None else known.revision
    if not wanted:
        return current + 1
    if known is not None and wanted <= current:
        raise Refused(
            "HOLD_SUPERSEDED",
            "the hold has a newer revision",
            metadata={"hold_id": known.id, "revision": str(current)},
        )
    return wanted


def _require_scope(known: Hold, wanted: WantedHold) -> None:
    if known.scope and (known.scope, known.scope_id) != (wanted.scope, wanted.scope_id):
        raise Refused(
            "HOLD_SCOPE_CHANGED",
            "the hold covers something else; give another hold_id",
            metadata={"hold_id": known.id, "scope_id": known.scope_id},
        )
