"""Passes the trace context to other services: HTTP tools and MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def trace_headers(headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return HTTP headers that make the spans of the called service children of the current span.

    Use it in a tool that calls a service which takes part in your traces, so that one trace shows both sides:

        await client.get(url, headers=trace_headers())

    Args:
        headers: Further headers to include.

    Returns:
        ``headers`` and the headers of OpenTelemetry's configured propagators: ``traceparent``, and
        ``tracestate`` and ``baggage`` if present. Without a current span, or without OpenTelemetry, only
        ``headers``.
    """
    carrier = dict(headers or {})
    try:
        from opentelemetry.propagate import inject
    except ImportError:
        return carrier
    inject(carrier)
    return carrier


def mcp_trace_meta(_context: Any = None) -> dict[str, Any] | None:
    """Return the trace context for the ``_meta`` of a call to an MCP server.

    Pass it as ``tool_meta_resolver`` to a server of the SDK, such as ``MCPServerStdio``. Version 2 of the
    package ``mcp`` does the same by itself; with it, this function changes nothing.

    Returns:
        ``traceparent``, and ``tracestate`` and ``baggage`` if present; None without a current span.
    """
    return dict(trace_headers()) or None


def mcp_trace_client(headers: dict[str, str] | None = None, timeout: Any = None, auth: Any = None) -> Any:
    """Return an HTTP client for the connection to an MCP server that sends the trace context as headers.

    Pass it as ``httpx_client_factory`` in the ``params`` of ``MCPServerStreamableHttp`` or ``MCPServerSse``,
    for gateways and servers that read ``traceparent`` from the headers. This needs version 2 of the package
    ``mcp``; an older one sends all messages in the context of the connection.

    Args:
        headers: Headers of each request.
        timeout: As for the HTTP library.
        auth: As for the HTTP library.
    """
    from agents.mcp import server

    # Private, but only the SDK knows the HTTP library of the installed mcp.
    client = server._create_default_streamable_http_client(headers, timeout, auth)
    client.event_hooks["request"] = [*client.event_hooks.get("request", ()), _add_headers]
    return client


async def _add_headers(request: Any) -> None:
    request.headers.update(trace_headers())
