"""First stage: validates and completes the context for all later stages."""

from __future__ import annotations

from kantan_agents.context import check_context, fill_defaults
from kantan_agents.pipeline import Next, Run, calls_next_last


@calls_next_last
async def normalize_context(run: Run, call_next: Next) -> None:
    """Check the context and fill in ``tool_rules``, ``result`` and ``history`` (spec 2.6).

    First, because every other stage reads the context.

    Raises:
        ContextTypeError: E5.
        HistoryTypeError: E6, unless the agent keeps no history.
        ToolRulesTypeError: E18.
    """
    fill_defaults(check_context(run.context), keep_history=run.agent.history > 0)
    await call_next(run)
