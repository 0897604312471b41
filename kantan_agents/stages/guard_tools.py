"""Third stage: the tool rules are read before anything is run."""

from __future__ import annotations

from kantan_agents.pipeline import Next, Run, calls_next_last
from kantan_agents.tools import rules_in_force


@calls_next_last
async def guard_tools(run: Run, call_next: Next) -> None:
    """Refuse a run whose tool rules have mistakes (spec 8.2).

    Before ``call_sdk``, so that a mistake is an error at once. The rules themselves are applied where
    tools are listed and called, on the context as it is at that moment.

    Raises:
        InvalidToolRulesError: E20, with every mistake of the rule set.
    """
    rules_in_force(run.context, run.agent.standing_rules)
    await call_next(run)
