"""Fourth stage, and the only place that calls the SDK's runner."""

from __future__ import annotations

from kantan_agents.bridge import detach_result, guard_resumed
from kantan_agents.context import store
from kantan_agents.pipeline import Next, Run, calls_next_last, current_run
from kantan_agents.tools import (
    forget_violation,
    hidden_tool_called,
    pending_violation,
    refuse_hosted_calls,
)


@calls_next_last
async def call_sdk(run: Run, call_next: Next) -> None:
    """Run the agent through the SDK and put the result into ``context["result"]`` (spec 2.5).

    A result that an earlier stage has set is passed on as it is, and no model is called.
    """
    if run.result is None:
        agent = run.agent
        # A stage may have sent on a run of its own making.
        token = current_run.set(run)
        try:
            forget_violation(run)
            guard_resumed(run.input)
            run.result = await agent.runner.run(
                agent.sdk_agent,
                run.input,
                context=run.context,
                run_config=run.run_config,
                **run.options,
            )
        except Exception as error:
            violation = pending_violation(run) or await hidden_tool_called(error)
            if violation is None or violation is error:
                raise
            raise violation from error
        else:
            await refuse_hosted_calls(run.result, agent)
            violation = pending_violation(run)
            if violation is not None:  # of a last turn, after which the SDK asks for no tools
                run.result = None
                raise violation
        finally:
            current_run.reset(token)
    run.on_failure(store(run.context, "result", run.result))
    detach_result(run.result, run.context)
    await call_next(run)
