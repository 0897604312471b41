"""Records of the trace database as JSON data, the same keys in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from kantan_agents.cli.terminal.show_quantities import iso_time

if TYPE_CHECKING:
    from kantan_agents.tracing.store import PromptStats, PruneResult, StoredTrace, TraceSummary


def trace_data(trace: StoredTrace) -> dict[str, Any]:
    """Return a run as one flat object, and its spans."""
    from kantan_agents.tracing.store.export import as_plain_data

    return as_plain_data(trace)


def summary_data(trace: TraceSummary) -> dict[str, Any]:
    """Return a run as one flat object."""
    from kantan_agents.tracing.store import StoredTrace

    data = trace_data(StoredTrace(trace, ()))
    del data["spans"]
    return data


def finite_data(data: dict[str, Any]) -> dict[str, Any]:
    """Return ``data`` without NaN and infinities, which JSON does not have."""
    from kantan_agents.tracing.metadata import finite

    cleaned: dict[str, Any] = finite(data)
    return cleaned


def stats_data(stats: PromptStats) -> dict[str, Any]:
    """Return a prompt version as one flat object, with what can be computed from the counts."""
    return {
        **attrs.asdict(stats),
        "failure_rate": stats.failures / stats.runs if stats.runs else None,
        "tokens_per_run": stats.total_tokens / stats.runs if stats.runs else None,
        "first_run": iso_time(stats.first_run),
        "last_run": iso_time(stats.last_run),
    }


def prune_data(result: PruneResult) -> dict[str, Any]:
    """Return what pruning did, or would do."""
    return attrs.asdict(result)
