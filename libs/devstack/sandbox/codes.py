"""Authorization codes of the sandbox provider, each for one use, with PKCE (RFC 6749, RFC 7636)."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from devstack.sandbox.checks import Refusal
from devstack.sandbox.journal import Journal
from devstack.sandbox.tokens import Terms, Tokens

LIFE = timedelta(minutes=10)
_CODE = "sandbox-code-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The consent of a person."""

    redirect_uri: str
    challenge: str
    accounts: tuple[str, ...]
    scopes: tuple[str, ...]
    terms: Terms


@dataclass(slots=True, kw_only=True)
class _Code:
    consent: Consent
    time: datetime
    families: list[int] | None = None
    """The families of tokens that its exchange began; None: it was not used."""


class Codes:
    def __init__(self, journal: Journal, tokens: Tokens) -> None:
        self._journal = journal
        self._tokens = tokens
        self._codes: dict[str, _Code] = {}
        for entry in journal.ledger.entries():
            if entry["kind"] == "code":
                self._replay(entry)

    def issue(self, consent: Consent) -> str:
        code = f"{_CODE}{self._journal.ledger.length + 1}"
        self._write(code, "issued", asdict(consent))
        return code

    def accounts_of(self, code: str) -> tuple[str, ...]:
        found = self._codes.get(code)
        return found.consent.accounts if found else ()

    def exchange(self, code: str, *, verifier: str, redirect_uri: str) -> dict[str, object]:
        """Returns tokens of each account that was granted; raises Refusal. A second use revokes those of the first."""
        found = self._codes.get(code)
        if found is None or found.time + LIFE <= self._journal.now():
            raise Refusal(400, "INVALID_GRANT", "this code is not valid")
        if found.families is not None:
            self._tokens.revoke_families(found.families)
            raise Refusal(400, "INVALID_GRANT", "this code was used before: its tokens are revoked")
        consent = found.consent
        if redirect_uri != consent.redirect_uri or _challenge(verifier) != consent.challenge:
            raise Refusal(400, "INVALID_GRANT", "this code was issued to somebody else")
        pairs = [self._tokens.issue(account, consent.terms) for account in consent.accounts]
        self._write(code, "used", {"families": [self._tokens.family_of(pair) for pair in pairs]})
        accounts = [
            {"id": account, "name": f"Sandbox account {account}", **pair}
            for account, pair in zip(consent.accounts, pairs, strict=True)
        ]
        return {"scope": " ".join(consent.scopes), "accounts": accounts}

    def _write(self, code: str, event: str, facts: Mapping[str, object]) -> None:
        entry = {"kind": "code", "time": self._journal.time(), "event": event, "account": "", "code": code, **facts}
        self._replay(entry)
        self._journal.write(entry)

    def _replay(self, entry: Mapping[str, object]) -> None:
        match entry:
            case {"event": "used", "code": str(code), "families": [*families]}:
                self._codes[code].families = [int(str(each)) for each in families]
            case {"code": str(code), "time": str(time), "terms": dict(terms), **consent}:
                self._codes[code] = _Code(consent=_consent(consent, terms), time=datetime.fromisoformat(time))


def _consent(facts: Mapping[str, object], terms: Mapping[str, object]) -> Consent:
    match facts:
        case {"redirect_uri": str(uri), "challenge": str(challenge), "accounts": accounts, "scopes": scopes}:
            return Consent(
                redirect_uri=uri,
                challenge=challenge,
                accounts=tuple(accounts),  # type: ignore[arg-type]
                scopes=tuple(scopes),  # type: ignore[arg-type]
                terms=Terms(**terms),  # type: ignore[arg-type]
            )
        case _:
            raise AssertionError("a code of the ledger has a consent")


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
