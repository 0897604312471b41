"""``CounterfactualPlayback``: real models and recorded tools for one run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import agents
from agents import ApplyPatchTool, ComputerTool, FunctionTool, LocalShellTool, ShellTool

from kantan_agents.agent.bridge.structured_requests import open_stream
from kantan_agents.core.context import RESERVED_KEYS
from kantan_agents.core.interception import ModelCall, ToolCall, end_run_with
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import NotReplayableError
from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.lab.replay.answers_from_recording import is_part_of_run
from kantan_agents.lab.replay.experiment.plan import WantedExperiment
from kantan_agents.lab.replay.experiment.repetition import Repetition, RunStoppedError
from kantan_agents.lab.replay.experiment.tool_answers import result_of_simulation
from kantan_agents.lab.replay.provider_side import held_by_provider, why_not_repeated
from kantan_agents.lab.replay.recorded_results import error_of, result_of
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.models.client_retries import makes_all_retries
from kantan_agents.models.sent_once import answer_sent_once, stream_sent_once
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture import RunRecord


class CounterfactualPlayback(Repetition):
    """Gives each run its tape, and stops all of them at the first new call."""

    def __init__(self, recording: Recording, wanted: WantedExperiment, spending: Spending) -> None:
        super().__init__(recording, wanted, spending)
        self._recorded: dict[str, str] = {}

    def tape_for(self, run: Run) -> CounterfactualTape:
        """Return the tape of a run that starts."""
        if run.agent is self.wanted.simulate:
            self.seen.add_run(run, is_simulation=True)
            return CounterfactualTape(self, None)
        recorded = self._recorded_run(run)
        self.seen.add_run(run)
        if recorded is not None:
            self._recorded[run.id] = recorded.id
        return CounterfactualTape(self, recorded)

    def check_embedding(self, _model: str) -> None:
        """Do nothing: models are real."""

    def _recorded_run(self, run: Run) -> RunRecord | None:
        if not self.seen.runs:
            return self.recording.root
        taken = set(self._recorded.values())
        alike = [one for one in self.recording.runs[1:] if one.agent == run.agent.name]
        left = [one for one in alike if one.id not in taken]
        same_call = [one for one in left if one.parent_call == run.parent_call]
        return next(iter(same_call or left or alike), None)


class CounterfactualTape:
    """Calls the real models for one run, and answers its tool calls from the recording."""

    def __init__(self, playback: Repetition, recorded: RunRecord | None) -> None:
        self._playback = playback
        self._recorded = recorded
        self._rendered: dict[str, int] = {}
        self._begun = 0
        self.asks_models = True
        self.is_retried = False

    def form_memory(self, _call: ModelCall) -> None:
        """Return None: models are real."""

    def has_cached(self, _call: ModelCall, _model: Any, _request: Request) -> bool:
        """Return False: models are real."""
        return False

    async def answer(self, call: ModelCall, model: Any, request: Request) -> Any:
        """Call the model; raise if the run must stop, E93 if that would change the provider's state."""
        self._check(call, request)
        asked = request.answer(model)
        return await (answer_sent_once(model, asked) if makes_all_retries(request.settings) else asked)

    async def stream(self, call: ModelCall, model: Any, request: Request) -> AsyncIterator[Any]:
        """Call the model and yield its stream."""
        self._check(call, request)
        events = open_stream(model, request)
        if makes_all_retries(request.settings):
            events = stream_sent_once(model, events)
        async for event in events:
            yield event

    def _check(self, call: ModelCall, request: Request) -> None:
        playback = self._playback
        playback.check_running()
        held = held_by_provider(request.options)
        if held:
            reason = why_not_repeated(held[0])
            playback.refused = NotReplayableError(trace_id=playback.recording.trace_id, reason=reason)
            raise playback.refused
        self._check_live(call.agent, [tool for tool in request.tools if not runs_here(tool)])
        self._begun += 1

    def check_offered(self, agent: str, tools: Sequence[Any]) -> None:
        """Stop the run if a computer among the tools must not start."""
        self._check_live(agent, [tool for tool in tools if isinstance(tool, ComputerTool)])

    def _check_live(self, agent: str, tools: Sequence[Any]) -> None:
        for tool in tools:
            if tool.name not in self._playback.wanted.live:
                reason = "it would run at the provider or start something; name it in live if it may"
                raise self._playback.diverge(agent, tool.name, "", reason)

    def lets_run(self, call: ToolCall) -> bool:
        """Return whether a tool really runs: as part of the run, or in ``live`` and not recorded."""
        playback = self._playback
        if playback.new_call is not None or playback.refused is not None:
            return False
        if is_part_of_run(call.tool):
            playback.pool.take(call)
            return True
        if call.name not in playback.wanted.live or playback.pool.has(call):
            return False
        playback.seen.live.append(call.name)
        return True

    async def tool(self, call: ToolCall) -> Any:
        """Return the recorded result of an equal call, raise its error, or simulate it; or diverge."""
        playback = self._playback
        playback.check_running()
        recorded = playback.pool.take(call)
        if recorded is not None:
            playback.seen.played.add(recorded.call_id)
            if recorded.failure is not None:
                raise error_of(recorded.failure)
            return result_of(recorded, call.tool)
        if self._can_simulate(call):
            playback.seen.simulated.append(call.name)
            agent: Any = playback.wanted.simulate
            return await result_of_simulation(agent, call, playback.pool.examples(call.name))
        raise self._diverges(call, "the recorded run has not made this call, so its result is unknown")

    def rejection(self, call: ToolCall) -> Any:
        """Return the recorded message of a rejection of an equal call; None if no approval is due."""
        pool = self._playback.pool
        rejected = pool.rejected(call)
        if rejected is not None:
            return rejected.output
        if pool.has(call) or is_part_of_run(call.tool) or self._can_simulate(call):
            return None
        raise self._diverges(call, "it needs an approval, and the recorded run has none for this call")

    def listing(self, server: str) -> Sequence[Any] | str:
        """Return the recorded tools of an MCP server at this point, or why there are none."""
        runs = [] if self._recorded is None else [self._recorded]
        runs += [run for run in self._playback.recording.runs if run is not self._recorded]
        for run in runs:
            listings = [one for one in run.listings if one.server == server]
            now = [one for one in listings if one.before_call <= self._begun]
            if listings:
                listing = now[-1] if now else listings[0]
                return (listing.reason or "") if listing.tools is None else _mcp_tools(listing.tools)
        reason = "the recorded run has no list of the tools of this MCP server"
        raise self._playback.diverge("", f"MCP server {server}", "", reason)

    def context(self, agent: str, context: dict[str, Any]) -> None:
        """Restore the recorded values for the next instructions of an agent."""
        if self._recorded is None:
            return
        calls = [
            one
            for one in self._recorded.model_calls
            if one.agent == agent and not one.is_internal and not one.is_superseded
        ]
        at = self._rendered.get(agent, 0)
        self._rendered[agent] = at + 1
        if calls:
            values = calls[min(at, len(calls) - 1)].context
            context.update((path, value) for path, value in values.items() if path not in RESERVED_KEYS)

    def model(self, _name: str | None) -> None:
        """Return None: models are real."""

    def _can_simulate(self, call: ToolCall) -> bool:
        wanted = self._playback.wanted
        if wanted.simulate is None or call.name in wanted.live:
            return False
        return isinstance(call.tool, FunctionTool) and call.run.agent is not wanted.simulate

    def _diverges(self, call: ToolCall, reason: str) -> RunStoppedError:
        error = self._playback.diverge(call.agent, call.name, call.arguments, reason)
        end_run_with(call.run, error)
        return error


def runs_here(tool: Any) -> bool:
    """Return whether a tool runs in this process."""
    if isinstance(tool, ShellTool):
        environment: Mapping[str, Any] = tool.environment or {}
        return bool(environment.get("type", "local") == "local")
    return isinstance(tool, (FunctionTool, LocalShellTool, ApplyPatchTool)) or is_custom(tool)


def is_custom(tool: Any) -> bool:
    """Return whether a tool is a ``CustomTool``, if the SDK's version has it."""
    kind = getattr(agents, "CustomTool", None)
    return kind is not None and isinstance(tool, kind)


def _mcp_tools(tools: Sequence[Mapping[str, Any]]) -> list[Any]:
    from mcp.types import Tool

    return [Tool.model_validate(json.loads(json.dumps(tool, default=dict))) for tool in tools]
