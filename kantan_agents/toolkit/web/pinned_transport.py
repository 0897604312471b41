"""An HTTP transport that resolves a host once, checks the addresses, and connects to one of them.

Python's own table of the public internet changes from version to version.
"""

from __future__ import annotations

import socket
import ssl
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import anyio
import httpx

from kantan_agents.errors import FetchError, URLRejectedError

NOT_PUBLIC: Final = (
    # IANA IPv4 Special-Purpose Address Registry
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # behind a provider's translation; metadata of Alibaba
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local; metadata of most clouds
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments; metadata of Oracle
    "192.0.2.0/24",  # documentation
    "192.31.196.0/24",  # AS112
    "192.52.193.0/24",  # AMT
    "192.88.99.0/24",  # relays of 6to4
    "192.168.0.0/16",  # private
    "192.175.48.0/24",  # AS112
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    # Public by their range, but reserved for a cloud's services, which answer its machines only
    "161.26.0.0/16",  # IBM
    "166.8.0.0/14",  # IBM
    "168.63.129.16/32",  # Azure
    # IANA IPv6 Special-Purpose Address Registry, within 2000::/3
    "2001::/23",  # protocol assignments: Teredo, benchmarks, AMT, AS112, ORCHID, drones
    "2001:db8::/32",  # documentation
    "2620:4f:8000::/48",  # AS112
    "3fff::/20",  # documentation
)

_V4: Final = tuple(IPv4Network(one) for one in NOT_PUBLIC if ":" not in one)
_V6: Final = tuple(IPv6Network(one) for one in NOT_PUBLIC if ":" in one)

# This contains all of the public internet. So no line is needed for `::`, `::1`, 64:ff9b:1::/48, 100::/64,
# 5f00::/16, fc00::/7, fe80::/10, fec0::/10, ff00::/8, nor for IPv4 addresses behind zeros.
_UNICAST: Final = IPv6Network("2000::/3")

_NAT64: Final = IPv6Network("64:ff9b::/96")
_6TO4: Final = IPv6Network("2002::/16")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
_32_BITS: Final = 0xFFFF_FFFF


class PinnedTransport(httpx.AsyncBaseTransport):
    """Connects to a checked address: a second DNS response cannot lead it elsewhere."""

    def __init__(self, tls: ssl.SSLContext, *, private: bool) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=tls, trust_env=False)
        self._private = private

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raises E171 and E172."""
        url = request.url
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        *others, last = await _checked_addresses(str(url), host, port, private=self._private)
        for address in others:
            try:
                return await self._send(request, host, address)
            except (httpx.ConnectError, httpx.ConnectTimeout):  # noqa: PERF203 - one of a few addresses
                continue
        return await self._send(request, host, last)

    async def _send(self, request: httpx.Request, host: str, address: str) -> httpx.Response:
        # The Host header has the name, and certificates are checked against it.
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close its connections."""
        await self._inner.aclose()


async def _checked_addresses(url: str, host: str, port: int, *, private: bool) -> list[str]:
    """Raise E172 for no address, E171 for one that is not public."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(url=url, reason=f"the host {host} is not found ({error})") from error
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    for address in addresses:
        # All of them: an attacker's name may have a public address and a private one.
        if not private and not is_public(ip_address(address.partition("%")[0])):
            reason = f"{host} is {address}, which is not an address of the public internet"
            raise URLRejectedError(url=url, reason=reason)
    if not addresses:
        raise FetchError(url=url, reason=f"the host {host} has no address")
    return addresses


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address, and any IPv4 address that it embeds, is public.

    The embedded address in a network with its own NAT64 prefix is unknown.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4)
    inner = _inner(address)
    if inner is not None and not is_public(inner):
        return False
    if address in _NAT64 or address in _MAPPED:
        return True
    return address in _UNICAST and not any(address in network for network in _V6)


def _inner(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if address in _6TO4:
        return IPv4Address(number >> 80 & _32_BITS)
    if address in _NAT64 or address in _MAPPED or number >> 32 & _32_BITS in _ISATAP:
        return IPv4Address(number & _32_BITS)
    return None
