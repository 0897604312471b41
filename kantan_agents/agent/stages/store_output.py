"""Fifth stage: stores the structured output in the context."""

from __future__ import annotations

from kantan_agents.core.context import store
from kantan_agents.core.events import OutputStored
from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.models.structured import as_dict


@calls_next_last
async def store_output(run: Run, call_next: Next) -> None:
    """Put a structured output into ``context[output_dest]`` as a dict (spec 11.1).

    After ``call_sdk``. Uses the starting agent's ``output_dest``, or else the answering agent's. An output
    that is not a dict (a string, a list) is not stored.
    """
    output = getattr(run.result, "final_output", run.result)
    if not isinstance(output, str):
        output_dest = run.agent.output_dest or getattr(_answering_agent(run), "output_dest", None)
        stored = as_dict(output) if output_dest else None
        if output_dest and stored is not None:
            run.on_failure(store(run.context, output_dest, stored))
            if run.events is not None:
                await run.events.emit(OutputStored, key=output_dest)
    await call_next(run)


def _answering_agent(run: Run) -> object:
    return getattr(getattr(run.result, "last_agent", None), "owner", None)
