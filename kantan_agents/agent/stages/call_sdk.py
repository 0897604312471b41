"""Fourth stage, and the only caller of the SDK's runner."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

from agents import Runner, RunState

from kantan_agents.agent.bridge import (
    detach_result,
    drain_streamed_run,
    guard_resumed,
    observe_models,
    observing_hooks,
)
from kantan_agents.core.context import store
from kantan_agents.core.events import ApprovalNeeded
from kantan_agents.core.interception import (
    active_agent,
    forget_pending_error,
    pending_error,
    tracked_calls,
)
from kantan_agents.core.pipeline import Next, Run, calls_next_last, current_run
from kantan_agents.models.client_retries import makes_all_retries
from kantan_agents.models.protocol.results import set_run_id
from kantan_agents.support.waiting import wait_for_end
from kantan_agents.tools.guards.hosted import refuse_hosted_calls
from kantan_agents.tools.listing import hidden_tool_called
from kantan_agents.traces.metadata import COMMAND_MODEL, chosen_metadata


@calls_next_last
async def call_sdk(run: Run, call_next: Next) -> None:
    """Run the agent through the SDK and put the result into ``context["result"]`` (spec 2.5).

    If an earlier stage has set ``run.result``, that result is used and no model is called.
    """
    if run.result is None:
        agent = run.agent
        # A stage may have passed a different run to call_next.
        token, turn = current_run.set(run), active_agent.set(None)
        try:
            forget_pending_error(run)
            _prepare(run)
            if run.is_watched:
                # Not a separate function, which would be one more frame in each step of the run.
                observe_models(run.run_config, agent)
                with tracked_calls(run) as calls:
                    options = run.options if run.events is None else _observed_options(run)
                    try:
                        run.result = await _run_by_sdk(run, options)
                    except BaseException:
                        # After a cancellation or a tool's failure, the SDK cancels the other tools without
                        # waiting for them.
                        await wait_for_end(*calls)
                        raise
            else:
                run.result = await _run_by_sdk(run, run.options)
        except Exception as error:
            violation = pending_error(run) or await hidden_tool_called(error)
            if violation is None or violation is error:
                raise
            # Keep its own cause: a tool may have raised it from another error.
            raise violation from violation.__cause__ or error
        else:
            set_run_id(run.result, run.id)
            await refuse_hosted_calls(run.result, agent)
            violation = pending_error(run)
            if violation is not None:  # raised in the last turn, after which the SDK lists no tools
                run.result = None
                raise violation
        finally:
            active_agent.reset(turn)
            current_run.reset(token)
    run.on_failure(store(run.context, "result", run.result))
    chosen = {} if run.arm is None and COMMAND_MODEL not in run.metadata else chosen_metadata(run.metadata)
    detach_result(run.result, run.context, chosen)
    if run.events is not None:
        for approval in getattr(run.result, "interruptions", None) or ():
            await run.events.emit(ApprovalNeeded, **_asked(approval))
    await call_next(run)


def _prepare(run: Run) -> None:
    if isinstance(run.input, RunState):
        guard_resumed(run.input)
    # Late, because a delegated run takes over its parent's settings.
    settings = None if run.run_config is None else run.run_config.model_settings
    if settings is not None and settings.retry is not None:
        run.sends_once = makes_all_retries(settings)


def _observed_options(run: Run) -> dict[str, Any]:
    options = run.options
    hooks = observing_hooks(run, options.get("hooks"))
    return options if hooks is None else {**options, "hooks": hooks}


def _run_by_sdk(run: Run, options: dict[str, Any]) -> Awaitable[Any]:
    # Not a coroutine: each one adds a frame to every resumption of the SDK's work.
    agent = run.agent
    given = {"context": run.context, "run_config": run.run_config, **options}
    if run.is_streamed:
        streamed = agent.runner.run_streamed(agent.sdk_agent, run.input, **given)
        # A custom runner may read the stream itself.
        return drain_streamed_run(run, streamed, only_reader=agent.runner is Runner)
    waiting: Awaitable[Any] = agent.runner.run(agent.sdk_agent, run.input, **given)
    return waiting


def _asked(approval: Any) -> dict[str, Any]:
    arguments = approval.arguments
    return {
        "agent": approval.agent.name,
        "call_id": approval.call_id or "",
        "tool": approval.name or "",
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, default=str),
    }
