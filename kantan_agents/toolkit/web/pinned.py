"""An HTTP transport that looks a host up once, checks the addresses, and connects to one of these."""

from __future__ import annotations

import ssl

import httpx

from kantan_agents.toolkit.web.addresses import checked_addresses


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
            URLRefusedError, FetchError: E171, E172, as ``checked_addresses``.
            httpx.TransportError: It fails.
        """
        url = request.url
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        *others, last = await checked_addresses(str(url), host, port, private=self._private)
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
