"""``SeenEvents``: what a run of an experiment does, from its events."""

from __future__ import annotations

from typing import Final

from kantan_agents.core.events import (
    Event,
    HandedOff,
    ModelCallFinished,
    ModelCallStarted,
    RunFinished,
    ToolCallRefused,
    ToolCallStarted,
)
from kantan_agents.core.pipeline import Run

NOT_SENT: Final = ("RunStoppedError", "NotReplayableError")
"""Classes of the errors with which a request ends that was never sent."""


class SeenEvents:
    """The model calls and tool calls of a run and of the runs inside it.

    Attributes:
        trace_id: Id of the trace of the outermost run.
        runs: Ids of the runs.
        simulations: Ids of those in which an agent plays a tool.
        model_calls: Finished model calls.
        handoffs: Hand-offs.
        tool_calls: Tool calls that were begun.
        refusals: Codes of the refused calls by the ids of their runs and calls.
        played: Ids of the recorded calls that have answered one.
        simulated: Names of the tools that an agent has played, once for each call.
        live: Names of the tools that have really run, once for each call.
        waits: Whether the run has ended because it waits for an approval.
        steps: Number of model calls that were begun.
    """

    def __init__(self) -> None:
        self.root: Run | None = None
        self.runs: list[str] = []
        self.simulations: set[str] = set()
        self.model_calls: list[ModelCallFinished] = []
        self.handoffs: list[HandedOff] = []
        self.tool_calls: list[ToolCallStarted] = []
        self.refusals: dict[tuple[str, str], str] = {}
        self.played: set[str] = set()
        self.simulated: list[str] = []
        self.live: list[str] = []
        self.waits = False
        self.steps = 0

    @property
    def trace_id(self) -> str | None:
        """Id of the trace of the outermost run; None if it has none."""
        return None if self.root is None else self.root.trace_id

    def add_run(self, run: Run, *, is_simulation: bool = False) -> None:
        """Add a run that begins."""
        self.root = self.root or run
        self.runs.append(run.id)
        if is_simulation:
            self.simulations.add(run.id)

    def add(self, event: Event) -> None:
        """Add an event of one of the runs."""
        is_own = event.run_id not in self.simulations
        if isinstance(event, ModelCallFinished):
            if event.error_type not in NOT_SENT:
                self.model_calls.append(event)
        elif isinstance(event, ModelCallStarted) and is_own and not event.internal:
            self.steps += 1
        elif isinstance(event, HandedOff) and is_own:
            self.handoffs.append(event)
        elif isinstance(event, ToolCallStarted) and is_own:
            self.tool_calls.append(event)
        elif isinstance(event, ToolCallRefused):
            self.refusals[event.run_id, event.call_id] = event.code
        elif isinstance(event, RunFinished) and self.root is not None and event.run_id == self.root.id:
            self.waits = event.waits_for_approval
