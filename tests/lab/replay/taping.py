"""Records a run, replays it and asserts all that a replay promises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from kantan_agents import (
    Agent,
    Event,
    Recording,
    Replay,
    SQLiteRecorder,
    TraceStore,
    record_traces,
    replay_async,
    subscribe,
)
from kantan_agents.core.events import ReasoningDelta, TextDelta, ToolArgumentsDelta
from kantan_agents.lab.replay.checks import without_generated

RAN: list[str] = []
"""Names of the tools whose bodies have run, in order."""

_OF_THIS_RUN = {"run_id", "parent_run_id", "sequence", "time", "seconds", "trace_id", "child_run_id"}
_OVERLAPPING = ("tool_call", "delegated")
_DELTAS = (TextDelta, ReasoningDelta, ToolArgumentsDelta)


@attrs.frozen
class Case:
    """An agent with what it is asked."""

    agent: Agent[Any]
    input: Any = "q"
    context: dict[str, Any] = attrs.field(factory=dict)
    options: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Taped:
    """A recorded run with its events, and the context that it has returned."""

    recording: Recording
    events: list[Any]
    context: dict[str, Any] | None


class Tapes:
    """Records runs in a database of its own and replays them."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.recorder: SQLiteRecorder = record_traces(path / "tapes.sqlite3", **options)
        self.store = TraceStore(path / "tapes.sqlite3")

    async def run(self, case: Case, *, streamed: bool = False) -> tuple[list[Any], dict[str, Any] | None]:
        """Run a case; return its events and its context, None if it has failed."""
        events: list[Event] = []
        context: dict[str, Any] | None = None
        with subscribe(events.append), suppress(Exception):
            if streamed:
                async with case.agent.stream(case.input, case.context, **case.options) as stream:
                    async for _ in stream:
                        pass
                context = stream.context
            else:
                context = await case.agent.run_async(case.input, case.context, **case.options)
        return contents(events), context

    def newest(self, **options: Any) -> Recording:
        """Return the recording of the newest trace."""
        self.recorder.force_flush()
        return Recording.from_trace(self.store, self.store.traces(limit=1)[0].trace_id, **options)

    async def record(self, case: Case, *, streamed: bool = False) -> Taped:
        """Record a run, saved to a file and loaded again."""
        events, context = await self.run(case, streamed=streamed)
        recording = self.newest()
        assert recording.root.is_streamed == streamed
        recording.save(self.path / "recording.json")
        return Taped(Recording.load(self.path / "recording.json"), events, context)

    async def replays(self, taped: Taped, agent: Agent[Any], *, inner: bool = True, **options: Any) -> Replay:
        """Replay a run and assert that it makes the same requests, output and events, and runs no tool.

        Args:
            taped: The run.
            agent: The agent, whose models cannot answer.
            inner: Whether the runs inside it happen in the replay too.
            **options: For ``replay``.
        """
        ran, events = len(RAN), list[Event]()
        with subscribe(events.append):
            replayed = await replay_async(taped.recording, agent, traced=True, **options)
        assert RAN[ran:] == []
        again = self.newest()
        assert again.trace_id != taped.recording.trace_id
        assert hashes(again) == hashes(taped.recording, inner=inner)
        assert again.root.output == taped.recording.root.output
        assert again.root.error == taped.recording.root.error
        known = [one for one in taped.events if inner or not (one["inner"] or one["type"] == "delegated")]
        assert contents(events) == known
        return replayed


def hashes(recording: Recording, *, inner: bool = True) -> list[list[str]]:
    """Return the hashes of the requests of each run, without the keys that the SDK makes up."""
    runs = recording.runs if inner else recording.runs[:1]
    return [[without_generated(call.request).hash for call in run.model_calls] for run in runs]


def contents(events: list[Event]) -> list[dict[str, Any]]:
    """Return what the events of each run say, without times and ids, and the deltas of a text as one.

    Runs and tool calls that overlap are brought into one order.
    """
    by_run: dict[str, list[Event]] = {}
    for event in events:
        if event.type == "retry_scheduled":  # a replay waits for nothing
            continue
        by_run.setdefault(event.run_id, []).append(event)
    runs = sorted((_in_order([*_said(listed)]) for listed in by_run.values()), key=repr)
    return [one for run in runs for one in run]


def _said(events: list[Event]) -> Iterator[dict[str, Any]]:
    calls: dict[str, int] = {}

    def kind(event: Event) -> tuple[Any, ...]:
        return (event.type, event.call_id) if isinstance(event, _DELTAS) else (id(event),)

    for _, same in itertools.groupby(events, kind):
        listed = [*same]
        first = listed[0]
        said = attrs.asdict(first, recurse=False)
        for name in ("text", "arguments"):
            if isinstance(first, _DELTAS) and name in said:
                said[name] = "".join(getattr(one, name) for one in listed)
        if "call_id" in said:
            said["call_id"] = calls.setdefault(said["call_id"], len(calls))
        inner = first.parent_run_id is not None
        kept = {key: value for key, value in said.items() if key not in _OF_THIS_RUN}
        yield {"type": first.type, "inner": inner, **kept}


def _in_order(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Bring the events of calls that overlap into the order in which the calls began."""
    ordered: list[dict[str, Any]] = []
    for overlap, group in itertools.groupby(said, lambda one: one["type"].startswith(_OVERLAPPING)):
        listed = [*group]
        ordered += sorted(listed, key=lambda one: one.get("call_id", 0)) if overlap else listed
    return ordered
