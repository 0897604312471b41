"""The plan of an experiment, and its obstacles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from agents import ComputerTool, RunConfig, Runner

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.core.templating import Marker, compile_template
from kantan_agents.errors import (
    EmptyCohortError,
    InvalidChangeError,
    InvalidOptionError,
    NoChangeError,
    UnknownRecordedToolError,
)
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.experiment.reached import Reached
from kantan_agents.lab.replay.answers_from_recording import was_made
from kantan_agents.lab.replay.change import Change
from kantan_agents.lab.replay.changed_agent import ChangedPart
from kantan_agents.lab.replay.cohort import Cohort, Skipped, estimated_use, obstacle
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.ledger import Amounts
from kantan_agents.support.nearest import nearest
from kantan_agents.tool_rules import EXPLICIT, ToolRules
from kantan_agents.traces.capture import ToolCallRecord
from kantan_agents.traces.capture.canonical import canonical


@attrs.frozen
class PlannedRun:
    """One repetition of a recorded run; ``repeat`` counts from 0."""

    trace_id: str
    run_id: str
    repeat: int
    estimate: Amounts

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the run in its experiment."""
        return self.trace_id, self.run_id, self.repeat


@attrs.frozen
class ExperimentPlan:
    """The runs of an experiment, latest trace first, and the omitted traces."""

    units: Sequence[PlannedRun]
    skipped: Sequence[Skipped]


@attrs.frozen
class WantedExperiment:
    """The options of an experiment's caller; ``parts`` are the changed agents."""

    before: Agent[Any]
    after: Agent[Any]
    changes: Sequence[Change]
    parts: Sequence[ChangedPart]
    live: frozenset[str]
    simulate: Agent[Any] | None
    repeats: int
    prices: Prices
    context: Mapping[str, Any]
    config: RunConfig

    @property
    def run_rules(self) -> Mapping[str, Any] | None:
        """The explicit rules of every run; None for the recorded rules."""
        return next((one.run_rules for one in self.changes if one.run_rules is not None), None)


def plan_of(cohort: Cohort, wanted: WantedExperiment) -> ExperimentPlan:
    """Read the cohort once and return the plan; E75, E94, E95, E96 or E97 if it cannot run."""
    check_agent(wanted.after, wanted.live)
    units: list[PlannedRun] = []
    skipped: list[Skipped] = []
    offered = {tool.name for tool in wanted.after.tools}
    has_new_rules = wanted.run_rules is None
    for trace_id in cohort.trace_ids:
        for found in _of_agent(cohort, trace_id, wanted.before.name):
            reason = None if isinstance(found, Skipped) else obstacle(found, wanted.live)
            if isinstance(found, Skipped) or reason is not None:
                skipped.append(found if isinstance(found, Skipped) else Skipped(trace_id, str(reason)))
                continue
            _check_tools(found, wanted.after)
            _check_markers(found, wanted)
            has_new_rules = has_new_rules or _rules_of(found) != _normal(wanted.run_rules or {})
            offered |= _names_in(found)
            estimate = _estimate(found, wanted)
            units += [
                PlannedRun(trace_id, found.root.id, number, estimate) for number in range(wanted.repeats)
            ]
    if not units:
        raise EmptyCohortError(reason=_why_empty(skipped))
    if not has_new_rules:
        raise NoChangeError(change="rules", reason="all recorded runs had these explicit rules")
    for name in sorted(wanted.live - offered):
        near = nearest(name, offered)
        hint = f"; did you mean {near!r}?" if near is not None else ""
        reason = f"neither the agent nor a recorded run has a tool {name!r}{hint}"
        raise InvalidOptionError(option="live", reason=reason)
    return ExperimentPlan(tuple(units), tuple(skipped))


def check_agent(agent: Agent[Any], live: Iterable[str]) -> None:
    """Raise E75 if an agent has its own runner, or may start a computer before a call."""
    if agent.runner is not Runner:
        reason = f"has a runner of its own ({agent.runner!r}), which may do anything"
        raise InvalidOptionError(option="agent", reason=reason)
    for one in Reached(agent, {}).agents:
        for tool in getattr(one, "tools", ()):
            if isinstance(tool, ComputerTool) and tool.name not in live:
                reason = (
                    f"the tool {tool.name!r} of {one.name!r} starts a computer; name it in live if it may"
                )
                raise InvalidOptionError(option="agent", reason=reason)


def _of_agent(cohort: Cohort, trace_id: str, agent: str) -> Sequence[Recording | Skipped]:
    found = cohort.read(trace_id)
    own = [one for one in found if isinstance(one, Skipped) or one.root.agent == agent]
    if own:
        return own
    others = ", ".join(sorted({repr(one.root.agent) for one in found if isinstance(one, Recording)}))
    return [Skipped(trace_id, f"it is a run of {others or 'no agent'}, not of {agent!r}")]


def _check_tools(recording: Recording, agent: Agent[Any]) -> None:
    for call in recording.root.tool_calls:
        if call.agent == agent.name and was_made(call) and not _has_tool(agent, call):
            raise UnknownRecordedToolError(tool_name=call.tool.name, agent=agent.name)


def _has_tool(agent: Agent[Any], call: ToolCallRecord) -> bool:
    if call.tool.server is not None:
        return call.tool.server in agent.sdk_agent.server_names
    names = (call.tool.name, *call.tool.names)
    return any(agent.sdk_agent.local_tool_named(name) is not None for name in names)


def _check_markers(recording: Recording, wanted: WantedExperiment) -> None:
    for part in wanted.parts:
        prompt = part.after.instructions
        if part.change.what != "prompt" or (isinstance(prompt, Prompt) and prompt.literal):
            continue
        runs = [
            run for run in recording.runs if any(call.agent == part.after.name for call in run.model_calls)
        ]
        if not runs and part.change.agent is not None:
            continue  # this run did not reach it
        before = part.before.instructions
        known = _paths(before.text if isinstance(before, Prompt) else before)
        known |= {path for run in runs for call in run.model_calls for path in call.context}
        for path in sorted(_paths(part.change.value)):
            if path not in known and path.split(".")[0] not in wanted.context:
                reason = (
                    f"it reads {path!r} from the context, and the recorded runs do not say what that was; "
                    "give it with context="
                )
                raise InvalidChangeError(change="prompt", reason=reason)


def _paths(text: str) -> set[str]:
    return {one.path for one in compile_template(text) if isinstance(one, Marker) and one.source == "ctx"}


def _rules_of(recording: Recording) -> bytes:
    explicit = [rules for name, rules in recording.root.rules.layers if name == EXPLICIT]
    return _normal(explicit[0] if explicit else {})


def _normal(rules: Mapping[str, Any]) -> bytes:
    return canonical(ToolRules.parse(rules).to_dict())


def _names_in(recording: Recording) -> set[str]:
    calls = [call for run in recording.runs for call in run.model_calls]
    return {tool.name for call in calls for tool in call.request.tools}


def _estimate(recording: Recording, wanted: WantedExperiment) -> Amounts:
    own = wanted.before.name
    models = {one.agent or own: one.value for one in wanted.changes if one.what == "model"}
    return estimated_use(recording, wanted.prices, models)


def _why_empty(skipped: Sequence[Skipped]) -> str:
    more = f" (and {len(skipped) - 1} more)" if len(skipped) > 1 else ""
    first = f"{skipped[0].trace_id}: {skipped[0].reason}{more}" if skipped else "it has no run"
    return f"none of its traces can be run again; {first}"
