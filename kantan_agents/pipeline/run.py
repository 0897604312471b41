"""Everything about one run, in one object; nothing about a run lives anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import attrs

from kantan_agents.events import Emitter


@attrs.define(slots=True, eq=False, repr=False)
class Run:
    """One run on its way through the pipeline; what a stage reads and changes.

    Attributes:
        agent: The Agent that was asked to run.
        input: A str, a list of the SDK's input items, or a ``RunState`` to be resumed.
        context: The caller's own dict.
        id: ``agent_run_id``, 32 hexadecimal digits that sort by time (spec 2.4).
        options: What the caller gave besides, for ``Runner.run``: ``max_turns``, ``session``, ...
        run_config: The SDK's ``RunConfig`` of this run.
        metadata: The trace metadata, complete before the first stage (spec 4).
        model_provider: The model provider the caller has put into the RunConfig, which then answers for
            every agent of the run; else None.
        instructions: The rendered instructions. A stage between ``render_instructions`` and
            ``call_sdk`` may replace them; what it sets is used for every turn of the run.
        rendered: What the renderer returned last; ``instructions`` is another object where a stage
            has replaced it.
        turns: How many turns of the starting agent have begun.
        result: The SDK's ``RunResult``. Set before ``call_sdk`` it is passed on as the answer, and no
            model is called.
        trace_id: Id of the trace the run is recorded in, or None when tracing is off.
        state: For custom stages: ``run.state[key]``.
        events: Tells of what happens in the run; None if nobody listens.
        is_streamed: Whether the models are to stream their answers.
        model_calls: The agent's middleware around each model call, the outermost first.
        tool_calls: The agent's middleware around each tool call, the outermost first.
        delegation: Its place among the runs that wait for one another, and what lies over its rules.
        is_nested: Whether it was begun inside another run, by a tool for example: what it is asked may then
            be a model's text and not a user's.
        mistake: What went wrong before the trace was open; it is raised inside of the middleware.
    """

    agent: Any
    input: Any
    context: dict[str, Any]
    id: str
    options: dict[str, Any] = attrs.field(factory=dict)
    run_config: Any = None
    metadata: dict[str, Any] = attrs.field(factory=dict)
    model_provider: Any = None
    instructions: str | None = None
    rendered: str | None = None
    turns: int = 0
    result: Any = None
    trace_id: str | None = None
    state: dict[Any, Any] = attrs.field(factory=dict)
    events: Emitter | None = None
    is_streamed: bool = False
    model_calls: tuple[Any, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    delegation: Any = None
    is_nested: bool = False
    mistake: Exception | None = None
    # Part of the constructor, so that `attrs.evolve(run, ...)` shares it with the run it came from.
    _undo: list[Callable[[], None]] = attrs.field(factory=list)

    @property
    def is_watched(self) -> bool:
        """Whether anybody is to be told of model calls and tool calls, or has put code around them."""
        return self.events is not None or bool(self.model_calls or self.tool_calls)

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` if this run fails or is cancelled; the last one registered goes first.

        For stages that write to the context: a failed run must leave it as it was on entry.
        """
        self._undo.append(undo)

    def mark(self) -> int:
        """Return what ``roll_back`` takes to undo only what is written from now on."""
        return len(self._undo)

    def roll_back(self, mark: int = 0) -> None:
        """Take back what the stages have written, or have written since ``mark``."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def __reduce__(self) -> tuple[Any, ...]:
        # It travels on exceptions, and those cross process borders: what identifies the run goes along.
        text = self.input if isinstance(self.input, str) else None
        return (_recalled, (text, self.id, self.trace_id, self.metadata))

    def __repr__(self) -> str:
        name = getattr(self.agent, "name", None)
        state = "finished" if self.result is not None else "open"
        return f"<Run {self.id} of {name!r}, {state}>"


def _recalled(text: str | None, run_id: str, trace_id: str | None, metadata: dict[str, Any]) -> Run:
    return Run(None, text, {}, run_id, metadata=metadata, trace_id=trace_id)


current_run: ContextVar[Run | None] = ContextVar("kantan_agents_current_run", default=None)
"""The run this task belongs to; how per-run data reaches callbacks that the SDK calls."""
