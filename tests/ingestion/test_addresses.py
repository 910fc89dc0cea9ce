"""Which addresses are public: every form that leads inside is not."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingestion.addresses import is_public, may_be_reached

INSIDE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "100::1",
    "2001::7f00:1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2606:4700::5efe:10.0.0.1",
    "2606:4700::200:5efe:10.0.0.1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
OUTSIDE = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]


@pytest.mark.parametrize("address", INSIDE)
def test_what_leads_inside_is_not_reached(address: str) -> None:
    assert not may_be_reached(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_public_is_reached(address: str) -> None:
    assert may_be_reached(address)


@pytest.mark.parametrize("address", ["", "localhost", "0x7f.1", "127.1", "8.8.8.8/32", "2606:4700::1%1"])
def test_what_is_no_plain_address_is_not_reached(address: str) -> None:
    assert not may_be_reached(address)


def test_a_network_that_is_allowed_is_reached_in_each_form_of_its_addresses() -> None:
    allowed = [ip_network("10.20.0.0/16")]
    assert may_be_reached("10.20.1.1", allowed)
    assert may_be_reached("::ffff:10.20.1.1", allowed)
    assert not may_be_reached("10.21.1.1", allowed)


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0"])
def test_link_local_addresses_are_never_allowed(address: str) -> None:
    assert not may_be_reached(address, [ip_network("0.0.0.0/0"), ip_network("::/0")])


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_within_ipv6_is_judged_as_itself(address: IPv4Address) -> None:
    for prefix in (0xFFFF << 32, 0x64FF9B << 96):
        assert is_public(IPv6Address(prefix | int(address))) == is_public(address)
