"""Copies traces from one database to another: a file to Postgres, Postgres to a file, or a file to a file."""

from kantan_agents.traces.copying.copy import CopyResult, copy_traces

__all__ = ["CopyResult", "copy_traces"]
