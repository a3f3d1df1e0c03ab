"""Requests for access at the sandbox provider: the page on which a person agrees, and the tokens for that."""

from collections.abc import Mapping
from functools import partial
from urllib.parse import parse_qs, urlencode

from devstack.sandbox.calls import Call, body_of
from devstack.sandbox.checks import Refusal
from devstack.sandbox.codes import Codes, Consent
from devstack.sandbox.faults import Operation
from devstack.sandbox.http1 import Connection, Request
from devstack.sandbox.publishing import Parts
from devstack.sandbox.tokens import Terms

DEFAULT_ACCOUNT = "sandbox-user"
DEFAULT_SECONDS = 3600.0
_REQUIRED = ("client_id", "redirect_uri", "state", "code_challenge")


class Authorizing:
    def __init__(self, parts: Parts, codes: Codes) -> None:
        self._parts = parts
        self._codes = codes

    def take(self, request: Request, connection: Connection) -> None:
        """Answers a person at the page (GET), or a request for tokens by a code or by a refresh token."""
        if request.method == "GET":
            call = Call(operation=Operation.AUTHORIZE, account="", arrival=self._parts.journal.time())
            self._parts.conduct.refusable(call, connection, partial(self._agree, call, request, connection))
            return
        form = {name: values[0] for name, values in parse_qs(request.body.decode("latin-1")).items()}
        account, key = self._named(form)
        call = Call(operation=Operation.TOKEN, account=account, arrival=self._parts.journal.time(), key=key)
        self._parts.conduct.refusable(call, connection, partial(self._exchange, call, form, connection))

    def _named(self, form: Mapping[str, str]) -> tuple[str, str]:
        """Returns the account of what is presented, and its name in the ledger."""
        if code := form.get("code"):
            return next(iter(self._codes.accounts_of(code)), ""), code
        return self._parts.tokens.presented(form.get("refresh_token", ""))

    def _agree(self, call: Call, request: Request, connection: Connection) -> None:
        """Answers as if the person had agreed at once. What they choose, such as `accounts`, stands in the query."""
        query = {name: values[0] for name, values in parse_qs(request.query).items()}
        if missing := [name for name in _REQUIRED if not query.get(name)]:
            raise Refusal(400, "INVALID_REQUEST", f"{', '.join(missing)} is missing")
        if query.get("response_type") != "code" or query.get("code_challenge_method") != "S256":
            raise Refusal(400, "INVALID_REQUEST", "the only response is a code, the only challenge S256")
        answer = {"state": query["state"]}
        answer |= {"error": "access_denied"} if "denied" in query else {"code": self._codes.issue(_consent(query))}
        target = f"{query['redirect_uri']}?{urlencode(answer)}"
        self._parts.journal.note(call, "answered", status=302)
        headers = f"Location: {target}\r\n"
        self._parts.journal.after_flush(partial(connection.answer, 302, b"{}", headers=headers))

    def _exchange(self, call: Call, form: Mapping[str, str], connection: Connection) -> None:
        parts = self._parts

        def grant() -> dict[str, object]:
            match form.get("grant_type"):
                case "refresh_token":
                    return parts.tokens.refresh(form.get("refresh_token", ""))
                case "authorization_code":
                    verifier, uri = form.get("code_verifier", ""), form.get("redirect_uri", "")
                    return self._codes.exchange(form.get("code", ""), verifier=verifier, redirect_uri=uri)
                case _:
                    raise Refusal(400, "UNSUPPORTED_GRANT_TYPE", "the grants are refresh_token and authorization_code")

        def answer() -> None:
            parts.answer(call, connection, "answered", 200, body_of(grant()), "")

        def unheard() -> tuple[str, bool]:
            grant()
            return "", True

        parts.conduct.serve(call, connection, answer, parts.conduct.take(call), unheard)


def _consent(query: Mapping[str, str]) -> Consent:
    return Consent(
        redirect_uri=query["redirect_uri"],
        challenge=query["code_challenge"],
        accounts=tuple(query.get("accounts", DEFAULT_ACCOUNT).split(",")),
        scopes=tuple(query.get("granted", query.get("scope", "")).split()),
        terms=Terms(
            seconds=float(query.get("seconds", DEFAULT_SECONDS)),
            rotating=query.get("rotating") == "true",
            grace=float(query.get("grace", 0)),
            refreshable=query.get("refreshable") != "false",
            refresh_seconds=float(query.get("refresh_seconds", 0)),
        ),
    )
