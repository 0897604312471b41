"""``Run``: the complete state of one run. No other object holds per-run state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import attrs

from kantan_agents.core.events import Emitter, Outcome
from kantan_agents.core.pipeline.result import RunResult


@attrs.define(slots=True, eq=False, repr=False)
class Run:
    """The state of one run, which stages read and change.

    Attributes:
        agent: The Agent that runs.
        input: A str, a list of the SDK's input items, or a ``RunState`` to resume. A stage before
            ``call_sdk`` may replace it. The record of the run has the original and the sent input. Replays,
            evaluations and resumed durable runs start from the original; a resumed ``RunState`` has the sent
            one.
        context: The caller's own dict.
        id: ``agent_run_id``, 32 hexadecimal digits that sort by time (spec 2.4).
        options: The caller's further options for ``Runner.run``: ``max_turns``, ``session``, ... Change them
            before ``call_sdk``.
        run_config: The SDK's ``RunConfig`` of this run. Change it before ``call_sdk``.
        metadata: The trace metadata, complete before the first stage (spec 4).
        model_provider: The model provider from the caller's RunConfig, which serves every agent of the run;
            else None.
        instructions: The rendered instructions. A stage between ``render_instructions`` and
            ``call_sdk`` may replace them for every turn of the run.
        rendered: What the renderer returned last; a stage has replaced the instructions if ``instructions``
            is another object.
        turns: Number of turns the starting agent has begun.
        result: The SDK's ``RunResult``. If a stage sets it before ``call_sdk``, no model is called. The
            answer is then its attribute ``final_output``, or the value itself if it has none; a dict is also
            stored in ``output_dest``. If the instructions cannot be rendered, they are None, and a warning is
            logged.
        trace_id: Id of the trace the run is recorded in, or None when tracing is off.
        state: For custom stages: ``run.state[key]``. The object of a stage is a key that no other stage uses.
        events: Emits the events of the run; None without observers.
        is_streamed: Whether models stream their answers.
        model_calls: The agent's middleware around each model call, outermost first.
        tool_calls: The agent's middleware around each tool call, outermost first.
        sends_once: Whether the clients of models must not retry by themselves, because ``Retry`` does.
        arm: Name of the arm that a ``Rollout`` has chosen; None without one.
        limits: Limits on the tools of all agents in the run, besides the rules of its context: pairs of a
            name and its ``ToolRules``. They are those of the arm of a rollout, of the skills that were chosen
            and of the command that began it. A limit is added by assigning a new tuple.
        delegation: Its place in the chain of delegating runs, with the rules that they impose on it.
        is_nested: Whether it began inside another run, for example in a tool; its input may then be a model's
            text rather than a user's.
        outcome: How the run has ended: ``"finished"``, ``"failed"`` or ``"cancelled"``; None while it is
            running. It is cancelled if ``CancelledError`` leaves its stages, whatever raised it.
        is_stopped: Whether ``RunStream.cancel(mode="after_turn")`` has ended it before the answer. Its
            outcome is then ``"finished"``.
        mistake: An error from before the trace was opened; it is raised inside the middleware.
        parent_run: Id of the run inside which this one began; None for an outermost run.
        parent_call: Id of the tool call inside which this one began.
        elapsed: Seconds since the run was begun, if it was begun in another process; else 0. Time limits
            count them.
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
    # The private attributes are for the library. They are parts of the constructor, so that
    # `attrs.evolve(run, ...)` shares them with the run it came from.
    # Collects the complete record of the run; None if no one wants it.
    _capture: Any = None
    # Answers the calls in a replay; None in an ordinary run.
    _tape: Any = None
    # Keeps what the calls have returned, so that another process can resume the run; None unless durable.
    _journal: Any = None
    elapsed: float = 0.0
    # Models of agents and the wrapped models, by the id of the agent.
    _observed: dict[int, tuple[Any, Any]] = attrs.field(factory=dict)
    _undo: list[Callable[[], None]] = attrs.field(factory=list)
    # What `at_end` has registered.
    _closers: list[Callable[[], Awaitable[None]]] = attrs.field(factory=list)

    @property
    def is_watched(self) -> bool:
        """Whether model calls and tool calls have observers or middleware, are captured, kept or replayed."""
        return (
            self.events is not None
            or self._capture is not None
            or self._tape is not None
            or self._journal is not None
            or bool(self.model_calls or self.tool_calls or self.sends_once)
        )

    @property
    def is_only_captured(self) -> bool:
        """Whether its calls are captured, and nothing else is interested in them."""
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
        """Whether traces and logs may contain what users, models and tools have written."""
        return bool(getattr(self.run_config, "trace_include_sensitive_data", True))

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` if this run fails or is cancelled; the last one registered runs first.

        For stages that write to the context: a failed run must restore it. If two runs share a context and
        both fail, the older one first, the younger one may restore values that the older one wrote.
        """
        self._undo.append(undo)

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Await ``close()`` when this run is over, however it ends; the last one registered runs first.

        For what a tool has opened for the run and left open, such as a process. ``outcome`` and ``result``
        are set by then. A cancellation does not interrupt it, so it must not take long.
        """
        self._closers.append(close)

    def mark(self) -> int:
        """Return a mark; ``roll_back(mark)`` undoes only what is written after this call."""
        return len(self._undo)

    def roll_back(self, mark: int = 0) -> None:
        """Undo everything that stages have written to the context, or everything since ``mark``."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions carry a run across process borders: pickle only what identifies it.
        text = self.input if isinstance(self.input, str) else None
        return (_unpickled, (text, self.id, self.trace_id, self.metadata))

    def __repr__(self) -> str:
        name = getattr(self.agent, "name", None)
        return f"<Run {self.id} of {name!r}, {self.outcome or 'open'}>"


def _unpickled(text: str | None, run_id: str, trace_id: str | None, metadata: dict[str, Any]) -> Run:
    return Run(None, text, {}, run_id, metadata=metadata, trace_id=trace_id)


def run_of(error: BaseException) -> Run | None:
    """Return the run that an error ended, with everything known about it; None for other errors.

    This is the typed form of ``error.kantan_run``.

        try:
            await agent.run_async("Hello")
        except Exception as error:
            run = run_of(error)
            if run is not None:
                print(run.id, run.trace_id)

    Args:
        error: What ``run_async``, ``run`` or a stream raised.
    """
    run = getattr(error, "kantan_run", None)
    return run if isinstance(run, Run) else None


def loggable(error: BaseException, text: str | None = None) -> str:
    """Return ``text``, by default ``repr(error)``; only the type if the current run has no sensitive data."""
    run = current_run.get()
    if run is not None and not run.records_sensitive_data:
        return type(error).__name__
    return repr(error) if text is None else text


current_run: ContextVar[Run | None] = ContextVar("kantan_agents_current_run", default=None)
"""The run of the current task; callbacks that the SDK calls find their run here."""
