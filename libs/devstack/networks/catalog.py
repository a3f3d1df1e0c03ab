"""The networks that have a fake, by the name of their provider."""

from collections.abc import Mapping

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.instagram import InstagramNetwork
from devstack.networks.linkedin import LinkedIn
from devstack.networks.network import Network
from devstack.networks.telegram import Telegram
from devstack.networks.unipile import Unipile
from devstack.networks.webhook_receiver import WebhookReceiver

NETWORKS: Mapping[str, type[Network]] = {
    "facebook": FacebookNetwork,
    "instagram": InstagramNetwork,
    "linkedin": LinkedIn,
    "telegram": Telegram,
    "unipile": Unipile,
    "webhook": WebhookReceiver,
}
