"""Second stage: the prompt's text becomes the instructions of this run."""

from __future__ import annotations

from kantan_agents.pipeline import Next, Run, calls_next_last


@calls_next_last
async def render_instructions(run: Run, call_next: Next) -> None:
    """Render the agent's instructions into ``run.instructions`` (spec 8.1).

    Before ``call_sdk``, so that a mistake in a template or a renderer costs no model call, and so that
    a later stage may read and replace the result. Later turns and hand-off targets are rendered when
    it is their turn, from the same context.

    Raises:
        RenderError: E77, a value of the context cannot be made into text.
        RendererResultError: E76, the agent's renderer returned no str.
    """
    run.instructions = run.rendered = await run.agent.render(run.context)
    await call_next(run)
