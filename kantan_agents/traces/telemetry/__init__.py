"""OpenTelemetry: runs as spans and metrics, and the trace context for other services.

Names are loaded on first use, so that ``trace_headers`` needs neither OpenTelemetry nor the SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kantan_agents.traces.telemetry.exporter import OtelExporter
    from kantan_agents.traces.telemetry.propagation import mcp_trace_client, mcp_trace_meta, trace_headers
    from kantan_agents.traces.telemetry.sending import OtelStats

__all__ = ["OtelExporter", "OtelStats", "mcp_trace_client", "mcp_trace_meta", "trace_headers"]

_HOMES = {
    "OtelExporter": "exporter",
    "OtelStats": "sending",
    "mcp_trace_client": "propagation",
    "mcp_trace_meta": "propagation",
    "trace_headers": "propagation",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
