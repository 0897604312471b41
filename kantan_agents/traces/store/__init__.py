"""The trace store."""

from kantan_agents.traces.store.filters import TraceFilters
from kantan_agents.traces.store.records import (
    IndexResult,
    JudgeSpan,
    PromptStats,
    PruneResult,
    StoredSpan,
    StoredTrace,
    TraceSummary,
)
from kantan_agents.traces.store.store import TraceStore

__all__ = [
    "IndexResult",
    "JudgeSpan",
    "PromptStats",
    "PruneResult",
    "StoredSpan",
    "StoredTrace",
    "TraceFilters",
    "TraceStore",
    "TraceSummary",
]
