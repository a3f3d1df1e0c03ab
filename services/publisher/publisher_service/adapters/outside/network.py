"""The one way to an address that a user named: it is resolved once, checked, and the checked address is connected to.

DNS may answer something else from one moment to the next. So the address that was checked is the one that is connected
to, while TLS still asks for, and verifies, the name. Proxies of the environment are ignored.
"""

import asyncio
import ssl
from collections.abc import Sequence, Set
from datetime import timedelta
from ipaddress import ip_address
from typing import Final

from publisher_service.adapters.outside.lookups import Lookups, Resolve, resolve
from publisher_service.adapters.outside.places import Crowded
from publisher_service.adapters.outside.refusals import AddressReason, AddressRefused, Unreachable
from publisher_service.adapters.outside.special_ranges import Address, special_range
from publisher_service.adapters.outside.urls import HostPort, OutsideUrl, read_host, read_redirect, read_url

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

# How many of a host's addresses are tried, one after another.
_MOST_ADDRESSES: Final = 4
_BUFFER: Final = 64 * 1024


class Outside:
    """`private_hosts` may be called by http and on private addresses; production has none."""

    def __init__(
        self,
        *,
        private_hosts: Set[HostPort] = frozenset(),
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._private_hosts = private_hosts
        self._lookups = Lookups(resolve)
        self._tls = tls

    def read_url(self, url: str) -> OutsideUrl:
        """Returns the URL if it may be called. Looks nothing up. Raises AddressRefused."""
        return read_url(url, private_hosts=self._private_hosts)

    def read_redirect(self, base: OutsideUrl, location: str) -> OutsideUrl:
        return read_redirect(base, location, private_hosts=self._private_hosts)

    def read_host(self, host: str, port: int) -> str:
        """Returns the name of a host if it may be called at that port. Looks nothing up. Raises AddressRefused."""
        private = host.lower().strip("[]")
        return private if (private, port) in self._private_hosts else read_host(host)

    def is_private(self, host: str, port: int) -> bool:
        """Returns whether the host may be called at that port without TLS, and at an address of any kind."""
        return (host.lower().strip("[]"), port) in self._private_hosts

    @property
    def tls(self) -> ssl.SSLContext:
        """The context that verifies servers by the certificate authorities of the machine."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    async def connect(
        self, organization_id: str, host: str, port: int, *, tls: ssl.SSLContext | None, timeout: timedelta
    ) -> Streams:
        """Connects to a public address of the host, on behalf of the organization.

        With `tls` the server has to prove that it is the host; STARTTLS begins later, by `StreamWriter.start_tls` with
        the host's name. Raises AddressRefused or Unreachable.
        """
        name = self.read_host(host, port)
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        addresses = await self._public_addresses(organization_id, name, port, deadline)
        return await _first_that_answers(addresses, name, port, tls, deadline)

    async def _public_addresses(self, organization_id: str, name: str, port: int, deadline: float) -> Sequence[str]:
        is_private = (name, port) in self._private_hosts
        # With the dot the search domains of the machine are not tried: those are the names of a cluster's insides.
        asked = name if is_private else f"{name}."
        try:
            async with asyncio.timeout_at(deadline):
                found = await self._lookups.addresses(organization_id, asked, port)
        except Crowded:
            raise Unreachable("TOO_BUSY", f"too many lookups for {name} and others") from None
        except TimeoutError:
            raise Unreachable("DNS_FAILED", f"{name} was not resolved in time") from None
        except OSError:
            raise Unreachable("DNS_FAILED", f"{name} cannot be resolved") from None
        addresses = [_address(each) for each in found]
        if not addresses:
            raise Unreachable("DNS_FAILED", f"{name} has no address")
        # One that is special is enough: the owner of the name may mean that one.
        if not is_private and any(each is None or special_range(each) for each in addresses):
            raise AddressRefused(AddressReason.URL_PRIVATE, f"{name} resolves to an address that is not public")
        return [str(each) for each in addresses[:_MOST_ADDRESSES]]


def _address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


async def _first_that_answers(
    addresses: Sequence[str], name: str, port: int, tls: ssl.SSLContext | None, deadline: float
) -> Streams:
    loop = asyncio.get_running_loop()
    for count, address in enumerate(addresses):
        # One that does not answer leaves time for the others.
        share = (deadline - loop.time()) / (len(addresses) - count)
        try:
            return await _connect_to(address, name, port, tls, loop.time() + share)
        except Unreachable:
            if count == len(addresses) - 1:
                raise
    raise AssertionError("unreachable")


async def _connect_to(address: str, name: str, port: int, tls: ssl.SSLContext | None, deadline: float) -> Streams:
    try:
        async with asyncio.timeout_at(deadline):
            return await asyncio.open_connection(
                address, port, limit=_BUFFER, ssl=tls, server_hostname=name if tls else None
            )
    except TimeoutError:
        raise Unreachable("CONNECT_TIMEOUT", f"{name} accepts no connection in time") from None
    except ssl.SSLCertVerificationError:
        raise Unreachable("TLS_FAILED", f"{name} has no valid certificate") from None
    except ssl.SSLError:
        raise Unreachable("TLS_FAILED", f"{name} speaks no TLS that we know") from None
    except OSError:
        raise Unreachable("CONNECT_FAILED", f"{name} refuses connections") from None


def abort(writer: asyncio.StreamWriter) -> None:
    """Closes a connection at once, without a wait for the peer."""
    writer.transport.abort()
