"""Middleware that a run passes on to the runs that begin inside it."""

from __future__ import annotations

from contextvars import ContextVar

from kantan_agents.core.interception.middleware import Layers

inherited_layers: ContextVar[Layers | None] = ContextVar("kantan_agents_inherited_layers", default=None)
"""Middleware around every run that begins in this context, outside the middleware of its agent.

A task and ``asyncio.to_thread`` copy the context, so it also applies to runs that outlive the outer one.
"""
