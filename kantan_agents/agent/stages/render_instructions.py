"""Second stage: renders the prompt into the instructions of this run."""

from __future__ import annotations

from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.stages")


@calls_next_last
async def render_instructions(run: Run, call_next: Next) -> None:
    """Render the agent's instructions into ``run.instructions`` (spec 8.1).

    Before ``call_sdk``, so that a mistake in a template or a renderer costs no model call, and so that later
    stages can read and replace the result. Instructions of later turns and handoff targets are rendered at
    their start, from the same context.

    If the run already has a result (a slash command, for example), a rendering error is logged instead of
    raised, and ``run.instructions`` stays None.

    Raises:
        RenderError: E77, a value of the context cannot be converted to a string.
        RendererResultError: E76, the agent's renderer did not return a str.
    """
    try:
        run.instructions = run.rendered = await run.agent.render(run.context)
    except Exception as error:
        if run.result is None:
            raise
        _log.warning("instructions not rendered", agent=run.agent.name, error_type=type(error).__name__)
    await call_next(run)
