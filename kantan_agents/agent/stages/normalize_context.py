"""First stage: validates and completes the context for all later stages."""

from __future__ import annotations

from kantan_agents.core.context import check_context, fill_defaults
from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.tools.context_keys import FINE_KEYS, check_context_keys


@calls_next_last
async def normalize_context(run: Run, call_next: Next) -> None:
    """Check the context and fill in ``tool_rules``, ``result`` and ``history`` (spec 2.6).

    First, because every other stage reads the context.

    Raises:
        ContextTypeError: E5, the context is not a dict.
        HistoryTypeError: E6, the history has a wrong type, unless the agent stores none.
        ToolRulesTypeError: E18, ``tool_rules`` has a wrong type.
        InvalidOptionError: E75, a key is almost ``tool_rules`` and the agent is strict.
    """
    context = check_context(run.context)
    if not context.keys() <= FINE_KEYS:
        check_context_keys(run)
    fill_defaults(context, keep_history=run.agent.history > 0)
    await call_next(run)
