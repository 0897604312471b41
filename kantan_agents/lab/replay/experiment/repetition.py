"""``Repetition``: the state of one repeated run."""

from __future__ import annotations

from typing import Final

from kantan_agents.core.events import (
    Event,
    HandedOff,
    ModelCallFinished,
    ModelCallStarted,
    RunFinished,
    ToolCallDenied,
    ToolCallStarted,
)
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import NotReplayableError
from kantan_agents.lab.experiment.prices import Prices, UsageMetrics
from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.lab.replay.experiment.outcome import NewCall
from kantan_agents.lab.replay.experiment.plan import WantedExperiment
from kantan_agents.lab.replay.experiment.tool_answers import ToolPool
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.secrets import mask

_NOT_SENT: Final = ("RunStoppedError", "NotReplayableError")
"""Classes of errors of requests that were never sent."""


class SeenEvents:
    """The calls of a run and of the runs inside it.

    ``refusals`` has codes of denied calls by the ids of their runs and calls.
    """

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self.used = UsageMetrics(cost=prices.nothing)
        self.root: Run | None = None
        self.runs: list[str] = []
        self.simulations: set[str] = set()
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
        """Trace id of the outermost run; None without one."""
        return None if self.root is None else self.root.trace_id

    def add_run(self, run: Run, *, is_simulation: bool = False) -> None:
        """Add a run that starts."""
        self.root = self.root or run
        self.runs.append(run.id)
        if is_simulation:
            self.simulations.add(run.id)

    def add(self, event: Event) -> UsageMetrics | None:
        """Add an event; return the usage of a finished model call."""
        is_own = event.run_id not in self.simulations
        if isinstance(event, ModelCallFinished):
            if event.error_type not in _NOT_SENT:
                used = self._prices.figures(event.model, event, event.seconds)
                self.used += used
                return used
        elif isinstance(event, ModelCallStarted) and is_own and not event.internal:
            self.steps += 1
        elif isinstance(event, HandedOff) and is_own:
            self.handoffs.append(event)
        elif isinstance(event, ToolCallStarted) and is_own:
            self.tool_calls.append(event)
        elif isinstance(event, ToolCallDenied):
            self.refusals[event.run_id, event.call_id] = event.code
        elif isinstance(event, RunFinished) and self.root is not None and event.run_id == self.root.id:
            self.waits = event.waits_for_approval
        return None


class RunStoppedError(Exception):
    """The run left its recording, or the budget ran out."""


class Repetition:
    """One repeated run; ``refused`` is a rejected request that would have changed the provider's state."""

    def __init__(self, recording: Recording, wanted: WantedExperiment, spending: Spending) -> None:
        self.recording = recording
        self.wanted = wanted
        self.pool = ToolPool(recording.runs)
        self.seen = SeenEvents(wanted.prices)
        self.new_call: NewCall | None = None
        self.refused: NotReplayableError | None = None
        self.is_broke = False
        self._spending = spending

    def check_running(self) -> None:
        """Raise if the run must stop; E93 if a request was rejected."""
        if self.refused is not None:
            raise self.refused
        if self.new_call is not None:
            raise RunStoppedError(self.new_call.reason)
        self.is_broke = self.is_broke or not self._spending.may_spend
        if self.is_broke:
            raise RunStoppedError("the budget is used up")

    def diverge(self, agent: str, tool: str, arguments: str, reason: str) -> RunStoppedError:
        """Store the first call at which the run leaves the recording; return the error."""
        if self.new_call is None:
            step = max(self.seen.steps, 1)
            self.new_call = NewCall(step, agent, tool, str(mask(arguments)), reason)
        return RunStoppedError(self.new_call.reason)
