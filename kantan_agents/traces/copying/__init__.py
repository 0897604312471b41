"""Copies traces between databases in files and in Postgres."""

from kantan_agents.traces.copying.copy import CopyResult, copy_traces

__all__ = ["CopyResult", "copy_traces"]
