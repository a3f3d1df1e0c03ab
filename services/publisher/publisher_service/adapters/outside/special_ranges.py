"""Addresses that are no part of the public Internet: the special-purpose registries of IANA, and multicast.

`ipaddress.is_global` does not do: Python 3.11 calls 64:ff9b::a9fe:a9fe, which is 169.254.169.254 behind NAT64, global,
and likewise 2002:a9fe:a9fe::, 192.0.0.8, fec0::1 and all of multicast.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address

# https://www.iana.org/assignments/iana-ipv4-special-registry, as of 2025-06. Ranges that the registry calls globally
# reachable are here as well: they are anycast services of the network itself, and no server of anybody's files.
_SPECIAL_4: Final = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "AMT",
    "192.88.99.0/24": "6to4 relay anycast",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",  # of the registry of multicast addresses
    "240.0.0.0/4": "reserved",
}
# https://www.iana.org/assignments/iana-ipv6-special-registry, as of 2025-06. Outside of 2000::/3 nothing is public, so
# that this has the ranges inside of it, and those whose name helps a reader of the refusal.
_SPECIAL_6: Final = {
    "::1/128": "loopback",
    "::/128": "unspecified",
    "64:ff9b:1::/48": "NAT64 for local use",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/32": "Teredo",
    "2001::/23": "IETF protocol assignments",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "AS112",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link local",
    "fec0::/10": "site local",
    "ff00::/8": "multicast",
}
_RANGES_4: Final = [(IPv4Network(network), name) for network, name in _SPECIAL_4.items()]
_RANGES_6: Final = [(IPv6Network(network), name) for network, name in _SPECIAL_6.items()]
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def special_range(address: Address) -> str | None:
    """Names the special range that an address is in; None if it is public.

    An IPv4 address that is mapped, or reached through the well-known prefix of NAT64, is judged as itself. Teredo, 6to4
    and NAT64 for local use are special, no matter which IPv4 address is inside: no public server needs them, and the
    last may have it at any of six places.
    """
    inner = _inner(address)
    if isinstance(inner, IPv4Address):
        return next((name for network, name in _RANGES_4 if inner in network), None)
    named = next((name for network, name in _RANGES_6 if inner in network), None)
    return named or (None if inner in _PUBLIC_6 else "no global unicast")


def _inner(address: Address) -> Address:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
