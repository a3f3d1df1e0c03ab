"""Client of a running sandbox provider: sets its faults, reads its ledger."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from devstack.http_call import http_call

CONTROL_SECONDS = 30.0


class SandboxClient:
    def __init__(self, url: str, ledger: Path | None) -> None:
        self.url = url
        self.path = ledger

    async def faults(self, *rules: Mapping[str, object]) -> None:
        """Replaces all rules."""
        await self._call("PUT", "faults", list(rules))

    async def clear_faults(self) -> None:
        await self._call("DELETE", "faults")

    async def mode(self, account: str, mode: str) -> None:
        """Sets the mode of an account: keyed, lookup or blind."""
        await self._call("PUT", f"accounts/{account}", {"mode": mode})

    async def account(self, account: str, **facts: object) -> None:
        """Sets what the provider does with an account: mode, visibility_lag, refuse_duplicates, media_seconds, ..."""
        await self._call("PUT", f"accounts/{account}", facts)

    async def quotas(self, *quotas: Mapping[str, object]) -> None:
        """Replaces all quotas."""
        await self._call("PUT", "quotas", list(quotas))

    async def issue_token(self, account: str, *, seconds: float, **terms: object) -> dict[str, Any]:
        """Issues an access token that lasts so long, and its refresh token."""
        pair: dict[str, Any] = await self._call("POST", f"accounts/{account}/tokens", {"seconds": seconds, **terms})
        return pair

    async def revoke_tokens(self, account: str) -> None:
        """Makes all tokens invalid that were issued for the account."""
        await self._call("DELETE", f"accounts/{account}/tokens")

    async def agree(self, authorization_url: str, *accounts: str, **choices: object) -> dict[str, str]:
        """Agrees as a person with a browser does. Returns what is sent back: `code` and `state`, or `error`."""
        chosen = {"accounts": ",".join(accounts)} if accounts else {}
        query = urlencode({**chosen, **choices})
        answer = await http_call("GET", f"{authorization_url}&{query}", within=CONTROL_SECONDS)
        if answer.status != 302:
            raise ValueError(f"the provider refuses: {answer.status} {answer.text}")
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    def ledger(self) -> list[dict[str, Any]]:
        """Returns every complete line, also while the provider is down."""
        assert self.path is not None, "the ledger of another machine's sandbox is read over HTTP"
        lines = self.path.read_text().splitlines(keepends=True) if self.path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def effects(self, **fields: object) -> list[dict[str, Any]]:
        """Returns the posts whose fields are equal to these (account, channel, destination, text, idempotency_key)."""
        entries = (entry for entry in self.ledger() if entry["kind"] == "effect")
        return [entry for entry in entries if fields.items() <= entry.items()]

    async def _call(self, method: str, path: str, body: object = None) -> Any:
        answer = await http_call(
            method,
            f"{self.url}/control/{path}",
            body=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            within=CONTROL_SECONDS,
        )
        if answer.status != 200:
            raise ValueError(f"{method} {path}: {answer.status} {answer.text}")
        return json.loads(answer.text)
