"""Records real runs for the tests of cohorts, and makes them again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
from agents import set_trace_processors

from kantan_agents import Agent, SQLiteRecorder, TraceStore
from kantan_agents.lab import Change, Cohort, Experiment, RunOutcome, replay_cohort
from kantan_agents.testing import ScriptedModel
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY

HARMLESS = Change.settings(temperature=0.3)
"""A change that a scripted model does not notice."""

Make = Callable[[ScriptedModel], Agent[Any]]


@attrs.define
class Recorder:
    """A database into which all runs of a test are recorded.

    Attributes:
        recorder: Writes it.
        store: Reads it.
        ran: What the bodies of tools have noted.
    """

    recorder: SQLiteRecorder
    store: TraceStore
    ran: list[str] = attrs.field(factory=list)

    def tool(self, name: str) -> Callable[..., str]:
        """Return a tool that notes that it has run."""

        def body(x: str = "1") -> str:
            """Do it."""
            self.ran.append(name)
            return f"{name}:{x}"

        body.__name__ = name
        return body

    def run(
        self,
        agent: Agent[Any],
        given: Any = "q",
        context: dict[str, Any] | None = None,
        *,
        streamed: bool = False,
        **options: Any,
    ) -> str:
        """Record a run, which may fail, and return the id of its trace."""

        async def go() -> None:
            if not streamed:
                await agent.run_async(given, context, **options)
                return
            async with agent.stream(given, context, **options) as stream:
                async for _ in stream:
                    pass

        with suppress(Exception):
            asyncio.run(go())
        return self.newest()

    def newest(self) -> str:
        """Return the id of the newest trace that no experiment has made."""
        self.recorder.force_flush()
        return self.store.traces(limit=1, metadata={EXPERIMENT_KEY: None})[0].trace_id

    def again(
        self,
        make: Make,
        before: Sequence[Any],
        after: Sequence[Any],
        change: Change = HARMLESS,
        context: dict[str, Any] | None = None,
        **options: Any,
    ) -> RunOutcome:
        """Record a run with one script of the model, make it again with another, and return the outcome.

        What tools do while the run is recorded is not noted.
        """
        trace_id = self.run(make(ScriptedModel(before)), context=dict(context or {}))
        self.ran.clear()
        experiment = self.replay([trace_id], make(ScriptedModel(after)), change, context=context, **options)
        return experiment.runs[0]

    def replay(
        self, trace_ids: Sequence[str], agent: Agent[Any], change: Change = HARMLESS, **options: Any
    ) -> Experiment:
        """Make recorded runs again."""
        return replay_cohort(Cohort.of(self.store, trace_ids), agent, change, **options)


@contextmanager
def recording(path: Path) -> Iterator[Recorder]:
    """Record all runs into a new database."""
    recorder = SQLiteRecorder(path)
    set_trace_processors([recorder])
    try:
        yield Recorder(recorder, TraceStore(path))
    finally:
        set_trace_processors([])
        recorder.shutdown()
