"""Which network addresses a request on behalf of a caller may reach: those of the public Internet, and what is allowed.

The registries of special addresses are IANA's (RFC 6890 and its successors); `ipaddress` knows most of them.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

from app.settings import Network

Address: TypeAlias = IPv4Address | IPv6Address

# What `is_global` takes for public, in some version of Python or in all.
_NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments, among them a cloud's metadata at 192.0.0.192
        "192.88.99.0/24",  # relays of 6to4
        "168.63.129.16/32",  # the host of every virtual machine in Azure
    )
)

# Nothing else of IPv6 is routed on the public Internet.
_UNICAST = IPv6Network("2000::/3")

_NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo, which carries an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",  # documentation
    )
)

# Networks without IPv4 translate these to the IPv4 address in their last 32 bits (RFC 6052).
_TRANSLATED = IPv6Network("64:ff9b::/96")

# The two halves of an interface's identifier before the IPv4 address that ISATAP tunnels to (RFC 5214).
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)

_LAST_32_BITS = 0xFFFF_FFFF


def may_be_reached(address: str, allowed: Sequence[Network] = ()) -> bool:
    """Return whether a request may go to an address as the resolver writes it; one that cannot be read may not.

    Link-local addresses are never allowed, since a cloud's metadata is there; nor are those with a zone.
    """
    try:
        found = _carried(ip_address(address))
    except ValueError:
        return False
    if found.is_link_local or (isinstance(found, IPv6Address) and found.scope_id):
        return False
    return any(found in network for network in allowed) or is_public(found)


def is_public(address: Address) -> bool:
    """Return whether an address belongs to one host of the public Internet."""
    address = _carried(address)
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    return address in _UNICAST and not any(address in network for network in _NOT_PUBLIC_V6) and not _is_isatap(address)


def _carried(address: Address) -> Address:
    """Return the IPv4 address that the system or the network makes of an IPv6 one, where it does."""
    if isinstance(address, IPv6Address) and not address.scope_id:
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _TRANSLATED:
            return IPv4Address(int(address) & _LAST_32_BITS)
    return address


def _is_isatap(address: IPv6Address) -> bool:
    return (int(address) >> 32) & _LAST_32_BITS in _ISATAP
