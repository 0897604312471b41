"""The default stages of a run, in order."""

from kantan_agents.agent.stages.call_sdk import call_sdk
from kantan_agents.agent.stages.emit_metadata import emit_metadata
from kantan_agents.agent.stages.guard_tools import guard_tools
from kantan_agents.agent.stages.normalize_context import normalize_context
from kantan_agents.agent.stages.render_instructions import render_instructions
from kantan_agents.agent.stages.store_output import store_output
from kantan_agents.agent.stages.trim_history import trim_history
from kantan_agents.core.pipeline import Stage

DEFAULT_STAGES: tuple[Stage, ...] = (
    normalize_context,
    render_instructions,
    guard_tools,
    call_sdk,
    store_output,
    trim_history,
    emit_metadata,
)
"""The whole flow of a run: the first stage is the outermost."""

__all__ = [
    "DEFAULT_STAGES",
    "call_sdk",
    "emit_metadata",
    "guard_tools",
    "normalize_context",
    "render_instructions",
    "store_output",
    "trim_history",
]
