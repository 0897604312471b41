"""Which agent a model is asked for, where the SDK does not say."""

from __future__ import annotations

from contextvars import ContextVar

asking_agent: ContextVar[str | None] = ContextVar("kantan_agents_asking_agent", default=None)
"""Name of the agent whose turn it is; set when the SDK asks for its tools, which it does first."""
