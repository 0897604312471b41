"""``RecordedAgents``: agents on the real model, whose recorded runs can all be replayed."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
from agents import ModelSettings

from kantan_agents import Agent, Rollout, TraceStore, record_traces, replay
from kantan_agents.core.events import RunFinished, TextDelta
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import NotReplayableError
from kantan_agents.lab import Recording

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


def settings(max_tokens: int = 12, seed: int = 7) -> ModelSettings:
    """Return settings for short answers of real sampling."""
    return ModelSettings(max_tokens=max_tokens, temperature=0.7, extra_args={"seed": seed})


@attrs.define
class Answer:
    """What a finished run has given.

    Attributes:
        output: Its output.
        usage: Its tokens, as the event has them.
        events: All of its events.
    """

    output: Any
    usage: Mapping[str, int]
    events: list[Any]

    @property
    def streamed_text(self) -> str:
        """The pieces of text that have arrived."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))


async def ask(agent: Agent[Any], question: str, *, streamed: bool = False) -> Answer:
    """Run an agent to its end."""
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        if streamed:
            async with agent.stream(question) as run:
                async for _ in run:
                    pass
        else:
            await agent.run_async(question)
    (finished,) = (event for event in seen if isinstance(event, RunFinished))
    return Answer(finished.output, finished.usage, seen)


async def ended(work: Awaitable[T], kind: type[E]) -> T | E:
    """Return the result, or an error of this kind: a small model does not always bring about the same."""
    try:
        return await work
    except kind as error:
        return error


class RecordedAgents:
    """Makes agents, records their runs, and replays them.

    Attributes:
        path: The trace database.
        store: The same, for reading.
        unreplayable: How many of the runs E93 refuses to replay: they were cancelled, or a stream broke off.
        scripted: Agents of the library itself with a scripted model, which are not replayed.
    """

    def __init__(self, path: Path, model: Any) -> None:
        self.path = path
        self._recorder = record_traces(path)
        self.store = TraceStore(path)
        self.unreplayable = 0
        self.scripted: set[str] = set()
        self._model = model
        self._agents: dict[tuple[str, str | None], Agent[Any]] = {}

    def agent(
        self, name: str, instructions: str | Prompt | Rollout = "Answer.", **options: Any
    ) -> Agent[Any]:
        """Return a new agent on the real model, unless the options name another one."""
        agent = Agent(name, instructions, **{"model": self._model, "model_settings": settings(), **options})
        self.add(agent)
        return agent

    def add(self, *agents: Agent[Any]) -> None:
        """Replay the runs of these agents with them."""
        for agent in agents:
            self._agents[agent.name, getattr(agent.given.instructions, "version", None)] = agent

    def flush(self) -> None:
        """Write what is recorded."""
        self._recorder.force_flush()

    def replayed(self) -> tuple[int, int]:
        """Replay each recorded run strictly; return how many were, and how many are refused by E93.

        Raises:
            ReplayDifferenceError: E92, one differs.
        """
        self.flush()
        same = refused = 0
        for summary in self.store.traces(limit=None):
            trace = self.store.trace(summary.trace_id)
            for run in (run for run in trace.runs if run.agent not in self.scripted):
                version = summary.metadata.get("prompt_version")
                agent = self._agents.get((run.agent, version)) or self._agents[run.agent, None]
                try:
                    replay(Recording.of(trace, run=run.id), agent)
                    same += 1
                except NotReplayableError:
                    refused += 1
        return same, refused
