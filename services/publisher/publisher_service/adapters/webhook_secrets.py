"""The secrets of webhooks at rest: sealed by the vault, and bound to their webhook."""

from publisher_service.adapters.vault import Vault
from servicekit.run.settings import Secret


def seal_secret(vault: Vault, secret: Secret, *, organization_id: str, subscription_id: str) -> bytes:
    return vault.seal_text(secret.reveal(), place=_place(organization_id, subscription_id))


def open_secret(vault: Vault, sealed: bytes, *, organization_id: str, subscription_id: str) -> Secret:
    """Returns the secret. Raises CredentialsUnreadable if none of this process's keys opens it."""
    return Secret(vault.open_text(sealed, place=_place(organization_id, subscription_id)))


def _place(organization_id: str, subscription_id: str) -> str:
    # Neither id can contain the separator.
    return f"webhook_subscription|{organization_id}|{subscription_id}|secret"
