"""The control calls of the sandbox provider, by which tests set its faults and read its ledger."""

import json
from urllib.parse import parse_qs

from devstack.sandbox.calls import body_of, error_body
from devstack.sandbox.faults import BadRule, Faults
from devstack.sandbox.http1 import Connection, Request
from devstack.sandbox.journal import Journal
from devstack.sandbox.quotas import Quotas
from devstack.sandbox.settings import Accounts
from devstack.sandbox.tokens import Tokens, terms_from

LEDGER_PAGE = 10_000
NDJSON = "application/x-ndjson"


class Control:
    def __init__(self, journal: Journal, faults: Faults, accounts: Accounts, quotas: Quotas, tokens: Tokens) -> None:
        self._journal = journal
        self._faults = faults
        self._accounts = accounts
        self._quotas = quotas
        self._tokens = tokens

    def serve(self, route: list[str], request: Request, connection: Connection) -> None:
        try:
            self._serve(route, request, connection)
        except (BadRule, ValueError, TypeError) as problem:
            connection.answer(422, error_body("INVALID", str(problem)))

    def _serve(self, route: list[str], request: Request, connection: Connection) -> None:
        answer: object
        match request.method, route:
            case "GET", ["health"]:
                answer = {"state": "serving", "ledger": self._journal.ledger.length}
            case "GET", ["faults"]:
                answer = self._faults.described()
            case "PUT", ["faults"]:
                self._faults.replace(json.loads(request.body))
                answer = self._faults.described()
            case "DELETE", ["faults"]:
                self._faults.clear()
                answer = []
            case "PUT", ["accounts", account]:
                answer = self._accounts.put(account, json.loads(request.body))
            case "POST", ["accounts", account, "tokens"]:
                answer = self._tokens.issue(account, terms_from(json.loads(request.body)))
            case "DELETE", ["accounts", account, "tokens"]:
                self._tokens.revoke(account)
                answer = {}
            case "PUT", ["quotas"]:
                answer = self._quotas.put(json.loads(request.body))
            case "GET", ["ledger"]:
                self._show_ledger(request, connection)
                return
            case _:
                connection.answer(404, error_body("NOT_FOUND", "there is nothing here"))
                return
        connection.answer(200, body_of(answer))

    def _show_ledger(self, request: Request, connection: Connection) -> None:
        query = parse_qs(request.query)
        since, limit = (
            int(query.get(name, [default])[0]) for name, default in (("since", "0"), ("limit", str(LEDGER_PAGE)))
        )
        lines = self._journal.ledger.since(since, min(max(limit, 1), LEDGER_PAGE))
        connection.answer(200, lines, content_type=NDJSON)
