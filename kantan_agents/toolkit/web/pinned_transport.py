"""An HTTP transport that looks a host up once, checks the addresses, and connects to one of these."""

from __future__ import annotations

import socket
import ssl
from ipaddress import ip_address

import anyio
import httpx

from kantan_agents.errors import FetchError, URLRefusedError
from kantan_agents.toolkit.web.addresses import is_public


class PinnedTransport(httpx.AsyncBaseTransport):
    """Connects to a checked address: a second answer of the name server cannot lead it elsewhere.

    Args:
        tls: TLS settings.
        private: Whether addresses of other networks than the public one are fine.
    """

    def __init__(self, tls: ssl.SSLContext, *, private: bool) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=tls, trust_env=False)
        self._private = private

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            URLRefusedError, FetchError: E171, E172, as ``_checked_addresses``.
            httpx.TransportError: It fails.
        """
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
        # The name is in the Host header, which the request has, and certificates are checked against it.
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
