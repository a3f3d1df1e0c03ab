"""An address of a user's server is public, or names the special range that it is in."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.outside.special_ranges import special_range


def words(text: str) -> list[str]:
    return text.split()


SPECIAL = words("""
0.0.0.0 0.255.255.255 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.8 192.0.0.9 192.0.0.170 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1
192.168.0.1 192.168.255.255 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255
240.0.0.1 255.255.255.255
:: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::127.0.0.1
64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b:1::1 64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1::8.8.8.8 100::1 100:0:0:1::1
2001::1 2001:0:a9fe:a9fe::1 2001:1::1 2001:2::1 2001:3::1 2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:db8::1
2002:a9fe:a9fe:: 2002:7f00:1::1 2002:808:808::1 2620:4f:8000::1 3fff::1 3fff:fff::1 5f00::1 4000::1 fc00::1
fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 feff::1 ff02::1 ff0e::1
""")
PUBLIC = words("""
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255
172.15.255.255 172.32.0.0 192.0.1.1 192.0.3.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 203.0.112.1
223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:200::1 2001:4860:4860::8888 2606:4700::1111
2620:4f:8001::1 2a00:1450::1 3ffe::1
""")


@pytest.mark.parametrize("address", SPECIAL)
def test_a_special_address_is_refused(address: str) -> None:
    assert special_range(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_accepted(address: str) -> None:
    assert special_range(ip_address(address)) is None


def test_the_tables_are_not_small() -> None:
    assert len(SPECIAL) + len(PUBLIC) > 100


@given(st.ip_addresses())
def test_nothing_is_public_that_python_calls_private(address: IPv4Address | IPv6Address) -> None:
    if not address.is_global and getattr(address, "ipv4_mapped", None) is None:
        assert special_range(address)


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_no_more_public_than_itself(address: IPv4Address) -> None:
    number = int(address)
    embedded = {
        "mapped": (0xFFFF << 32) | number,
        "compatible": number,
        "NAT64": (0x64FF9B << 96) | number,
        "6to4": (0x2002 << 112) | (number << 80),
        "Teredo": (0x20010000 << 96) | (number << 64) | (number ^ 0xFFFFFFFF),
    }
    public = {name for name, each in embedded.items() if special_range(IPv6Address(each)) is None}
    assert public == (set() if special_range(address) else {"mapped", "NAT64"})
