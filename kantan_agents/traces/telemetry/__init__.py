"""OpenTelemetry: runs as spans and metrics, and the trace context for other services.

Names are loaded on first use, so that ``trace_headers`` needs neither OpenTelemetry nor the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.traces.telemetry.exporter import OtelExporter
    from kantan_agents.traces.telemetry.propagation import mcp_trace_client, mcp_trace_meta, trace_headers
    from kantan_agents.traces.telemetry.sending import OtelStats

__all__ = [
    "OtelExporter",
    "OtelStats",
    "mcp_trace_client",
    "mcp_trace_meta",
    "trace_headers",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.traces.telemetry.exporter": ("OtelExporter",),
        "kantan_agents.traces.telemetry.propagation": ("mcp_trace_client", "mcp_trace_meta", "trace_headers"),
        "kantan_agents.traces.telemetry.sending": ("OtelStats",),
    },
)
