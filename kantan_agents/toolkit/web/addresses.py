"""Which addresses a page may be fetched from."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import anyio

from kantan_agents.errors import FetchError, URLRefusedError

_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_AZURE = IPv4Address("168.63.129.16")  # every virtual machine there reaches its host under it


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is one of the public internet, and so are those that it stands for."""
    if isinstance(address, IPv6Address):
        if address.teredo is not None or address in _NAT64_LOCAL:
            return False
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved and address != _AZURE


async def checked_addresses(url: str, host: str, port: int, *, private: bool) -> list[str]:
    """Return the addresses of a host.

    Args:
        url: The URL, for errors.
        host: The host.
        port: The port.
        private: Whether addresses of other networks than the public one are fine.

    Raises:
        FetchError: E172, there are none.
        URLRefusedError: E171, one of them is not public.
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(url=url, reason=f"the host {host} is not found ({error})") from error
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    for address in addresses:
        # All of them: a name that has one public address may have a second one for this purpose.
        if not private and not is_public(ip_address(address.partition("%")[0])):
            reason = f"{host} is {address}, which is not an address of the public internet"
            raise URLRefusedError(url=url, reason=reason)
    if not addresses:
        raise FetchError(url=url, reason=f"the host {host} has no address")
    return addresses
