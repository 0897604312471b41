"""The complete state of one run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import attrs

from kantan_agents.core.events import Emitter, Outcome
from kantan_agents.core.pipeline.result import RunResult


@attrs.define(slots=True, eq=False, repr=False)
class Run:
    """The state of one run. Stages and middleware read and change it.

    Attributes:
        agent: The Agent that runs.
        input: A str, a list of the SDK's input items, or a ``RunState`` to resume. A stage before
            ``call_sdk`` may replace it. The record has both the original and the sent input. Replays,
            evaluations and resumed durable runs start from the original; a resumed ``RunState`` has the sent
            input.
        context: The caller's own dict.
        id: ``agent_run_id``, 32 hexadecimal digits that sort by time (spec 2.4).
        options: Further options for ``Runner.run``: ``max_turns``, ``session``, ... Change them before
            ``call_sdk``.
        run_config: The SDK's ``RunConfig`` of this run. Change it before ``call_sdk``.
        metadata: The trace metadata, complete before the first stage (spec 4).
        model_provider: The model provider in the caller's RunConfig, which serves every agent of the run;
            else None.
        instructions: The rendered instructions. A stage between ``render_instructions`` and ``call_sdk`` may
            replace them for every turn.
        rendered: The renderer's last result. ``instructions`` is another object if a stage has replaced it.
        turns: Number of turns that the starting agent has started.
        result: The SDK's ``RunResult``. If a stage sets it before ``call_sdk``, no model is called. The
            answer is then its ``final_output``, or the value itself without that attribute; a dict is also
            stored in ``output_dest``. If the instructions then cannot be rendered, they are None, and a
            warning is logged.
        trace_id: Id of the trace that records the run; None when tracing is off.
        state: Storage for custom stages. Use the stage object as the key, so that keys do not collide.
        events: Emits the events of the run; None without observers.
        is_streamed: Whether models stream their answers.
        model_calls: The agent's middleware around each model call, outermost first.
        tool_calls: The agent's middleware around each tool call, outermost first.
        sends_once: Whether model clients must not retry, because ``Retry`` does.
        arm: Name of the arm that a ``Rollout`` has chosen; None without one.
        limits: Limits on the tools of all agents in the run, in addition to the rules in its context: pairs
            of a name and its ``ToolRules``, from a rollout arm, chosen skills or a slash command. Assign a
            new tuple to add one.
        delegation: Its position in the chain of delegating runs, and the rules that they impose on it.
        is_nested: Whether it started inside another run, for example in a tool. A model may have written its
            input.
        outcome: ``"finished"``, ``"failed"`` or ``"cancelled"``; None while it is running. It is canceled if
            ``CancelledError`` leaves its stages, whatever raised it.
        is_stopped: Whether ``RunStream.cancel(mode="after_turn")`` stopped it before the answer. Its outcome
            is then ``"finished"``.
        mistake: An error from before the trace was opened. It is raised inside the middleware.
        parent_run: Id of the run inside which this one started; None for an outermost run.
        parent_call: Id of the tool call inside which this one started.
        elapsed: Seconds since the run started, if it started in another process; else 0. Time limits include
            them.
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
    result: RunResult[Any] | None = None
    trace_id: str | None = None
    state: dict[Any, Any] = attrs.field(factory=dict)
    events: Emitter | None = None
    is_streamed: bool = False
    model_calls: tuple[Any, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    sends_once: bool = False
    arm: str | None = None
    limits: tuple[tuple[str, Any], ...] = ()
    delegation: Any = None
    is_nested: bool = False
    mistake: Exception | None = None
    outcome: Outcome | None = None
    is_stopped: bool = False
    parent_run: str | None = None
    parent_call: str | None = None
    # For the library. Constructor parameters, so that `attrs.evolve(run, ...)` shares them. The record of the
    # run.
    _capture: Any = None
    # Answers calls in a replay.
    _tape: Any = None
    # Stores results of calls for a durable run.
    _journal: Any = None
    elapsed: float = 0.0
    # Models and their wrappers by the agent's id.
    _observed: dict[int, tuple[Any, Any]] = attrs.field(factory=dict)
    _undo: list[Callable[[], None]] = attrs.field(factory=list)
    _closers: list[Callable[[], Awaitable[None]]] = attrs.field(factory=list)

    @property
    def is_watched(self) -> bool:
        """Whether observers, middleware, a capture, a journal or a replay need the calls."""
        return (
            self.events is not None
            or self._capture is not None
            or self._tape is not None
            or self._journal is not None
            or bool(self.model_calls or self.tool_calls or self.sends_once)
        )

    @property
    def is_only_captured(self) -> bool:
        """Whether its calls are captured, and nothing else needs them."""
        return self._capture is not None and not (
            self.events is not None
            or self._tape is not None
            or self._journal is not None
            or self.model_calls
            or self.tool_calls
            or self.sends_once
        )

    @property
    def records_sensitive_data(self) -> bool:
        """Whether traces and logs may contain what users, models and tools wrote."""
        return bool(getattr(self.run_config, "trace_include_sensitive_data", True))

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` if this run fails or is canceled; the last registered function runs first.

        A stage that writes to the context registers an ``undo`` that restores it. If two runs share a context
        and both fail, the older one first, the younger one may restore values that the older one wrote.
        """
        self._undo.append(undo)

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Await ``close()`` when this run ends, in any way; the last registered function runs first.

        Use it for resources that a tool leaves open, such as a process. ``outcome`` and ``result`` are set by
        then. A cancellation does not interrupt ``close``, so it must be quick.
        """
        self._closers.append(close)

    def mark(self) -> int:
        """Return a mark for ``roll_back``, which then undoes only later writes."""
        return len(self._undo)

    def roll_back(self, mark: int = 0) -> None:
        """Undo what stages wrote to the context, or only what they wrote since ``mark``."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions carry a run to other processes: pickle only its identity.
        text = self.input if isinstance(self.input, str) else None
        return (_unpickled, (text, self.id, self.trace_id, self.metadata))

    def __repr__(self) -> str:
        name = getattr(self.agent, "name", None)
        return f"<Run {self.id} of {name!r}, {self.outcome or 'open'}>"


def _unpickled(text: str | None, run_id: str, trace_id: str | None, metadata: dict[str, Any]) -> Run:
    return Run(None, text, {}, run_id, metadata=metadata, trace_id=trace_id)


def run_of(error: BaseException) -> Run | None:
    """Return the run that an error belongs to; None for other errors. The typed form of ``error.kantan_run``.

        try:
            await agent.run_async("Hello")
        except Exception as error:
            run = run_of(error)
            if run is not None:
                print(run.id, run.trace_id)

    Args:
        error: The exception that ``run_async``, ``run`` or a stream raised.
    """
    run = getattr(error, "kantan_run", None)
    return run if isinstance(run, Run) else None


def loggable(error: BaseException, text: str | None = None) -> str:
    """Return ``text`` or ``repr(error)``; only the type if the run must not log sensitive data."""
    run = current_run.get()
    if run is not None and not run.records_sensitive_data:
        return type(error).__name__
    return repr(error) if text is None else text


current_run: ContextVar[Run | None] = ContextVar("kantan_agents_current_run", default=None)
"""The run of the current task, for the SDK's callbacks."""
