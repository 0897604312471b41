"""Third stage: validates the tool rules before any model or tool is called."""

from __future__ import annotations

from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.tools.rules_in_force import rules_of_run


@calls_next_last
async def guard_tools(run: Run, call_next: Next) -> None:
    """Reject a run whose tool rules have mistakes (spec 8.2).

    Before ``call_sdk``, so that a mistake fails the run immediately. The rules are applied later, whenever
    tools are listed and called, to the context of that moment.

    Raises:
        InvalidToolRulesError: E20, with every mistake of the rule set.
    """
    layers = rules_of_run(run, run.context, run.agent.standing_rules)
    if run._capture is not None:
        run._capture.began_with(layers)
    await call_next(run)
