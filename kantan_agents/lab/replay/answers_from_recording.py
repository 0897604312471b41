"""``StrictTape``: recorded answers for a replayed run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents import ComputerTool, Model, ModelResponse, OpenAIChatCompletionsModel, OpenAIResponsesModel
from anyio import lowlevel
from openai import AsyncOpenAI

from kantan_agents.agent.bridge.captured.request_data import plain_request_data
from kantan_agents.agent.bridge.recorded_answers import model_response, stream_events
from kantan_agents.core.context import RESERVED_KEYS
from kantan_agents.core.interception import ModelCall, ToolCall
from kantan_agents.errors import NotReplayableError, ReplayDifferenceError, UnknownRecordedToolError
from kantan_agents.lab.replay.checks import Checks, difference_error, request_now
from kantan_agents.lab.replay.recorded_forms import RecordedForms
from kantan_agents.lab.replay.recorded_results import error_of, result_of
from kantan_agents.models.origin import origin_of, register_origin
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import ModelCallRecord, ModelRequest, RunRecord, ToolCallRecord
from kantan_agents.traces.capture.canonical import canonical, decode
from kantan_agents.traces.capture.compare import Difference
from kantan_agents.traces.capture.playback import IS_OWN_TOOL

_NOWHERE = "http://replay.invalid/"


class StrictTape:
    """Answers the calls of one run; ``fail`` makes the replay fail even if the run continues."""

    def __init__(self, recorded: RunRecord, checks: Checks, fail: Any) -> None:
        self.recorded = recorded
        self._checks = checks
        self._fail = fail
        # Of two requests that raced for one answer, the replay makes only the faster one.
        self._model_calls = [
            (at, call) for at, call in enumerate(recorded.model_calls) if not call.is_superseded
        ]
        self._tool_calls = [call for call in recorded.tool_calls if was_made(call)]
        self._begun = 0
        self.asks_models = False
        self.is_retried = False
        self.played_calls: set[str] = set()

    def form_memory(self, call: ModelCall) -> RecordedForms:
        """Return the recorded forms of structured output."""
        return RecordedForms([one for _, one in self._model_calls if _is_of(one, call)])

    def has_cached(self, call: ModelCall, model: Any, request: Request) -> bool:
        """Return whether the recorded answer came from a cache."""
        cached = [one for _, one in self._model_calls if one.from_cache and _is_of(one, call)]
        if not cached:
            return False
        now, name = request_now(plain_request_data(call, request, model)), origin_of(model).model
        equal = (one for _, one in self._model_calls if _is_of(one, call))
        found = next(
            (one for one in equal if not self._checks.of_call(one, name, now, is_internal=call.internal)),
            None,
        )
        return found is not None and found.from_cache

    async def answer(self, call: ModelCall, model: Any, request: Request) -> ModelResponse:
        """Return the recorded answer or raise the recorded error; raise E92 if the request differs."""
        recorded = self._recorded(call, model, request)
        if recorded.answer is None:
            raise _error_of(recorded)
        return model_response(recorded.answer, recorded.model)

    async def stream(self, call: ModelCall, model: Any, request: Request) -> AsyncIterator[Any]:
        """Yield the events of the recorded answer; otherwise as ``answer``."""
        recorded = self._recorded(call, model, request)
        if recorded.answer is None:
            raise _error_of(recorded)
        async for event in stream_events(recorded.answer, recorded.model):
            yield event

    def _recorded(self, call: ModelCall, model: Any, request: Request) -> ModelCallRecord:
        now = request_now(plain_request_data(call, request, model))
        name = origin_of(model).model
        self._begun += 1
        candidates = [(at, one) for at, one in self._model_calls if _is_of(one, call)]
        nearest: tuple[int, list[Difference]] | None = None
        for at, recorded in candidates:
            found = self._checks.of_call(recorded, name, now, is_internal=call.internal)
            if not found:
                self._check_tools(recorded, now)
                self._model_calls.remove((at, recorded))
                self.is_retried = any(_is_again(one, recorded) for later, one in candidates if later > at)
                return recorded
            nearest = nearest or (at, found)
        if nearest is None:
            place = f"model call {self._begun} of {call.agent!r}"
            raise self._differs(place, [Difference("calls", None, f"{call.agent}: {name}", "added")])
        place = f"model call {nearest[0] + 1} of {call.agent!r}"
        raise self._differs(place, nearest[1])

    def _check_tools(self, recorded: ModelCallRecord, now: ModelRequest) -> None:
        """Raise E96 if the agent lacks a tool that the answer calls, even if ``tools`` is ignored."""
        called = {item.get("name") for item in (recorded.answer.output if recorded.answer else ())}
        known = {tool.name for tool in now.tools}
        for tool in recorded.request.tools:
            if tool.name in called and tool.name not in known:
                error = UnknownRecordedToolError(tool_name=tool.name, agent=recorded.agent)
                self._fail(error)
                raise error

    def lets_run(self, call: ToolCall) -> bool:
        """Return whether a tool really runs, as part of the run."""
        if not is_part_of_run(call.tool):
            return False
        recorded = self._recorded_tool_call(call)
        if recorded is not None:
            self._tool_calls.remove(recorded)
        return True

    async def tool(self, call: ToolCall) -> Any:
        """Return the recorded result or raise the recorded error; raise E92 for a new call."""
        await lowlevel.checkpoint()  # parallel calls all start before the first one ends, as they did
        recorded = self._recorded_tool_call(call)
        if recorded is None:
            place = f"a call of the tool {call.name!r} by {call.agent!r}"
            raise self._differs(place, [Difference("calls", None, call.arguments, "added")])
        self._tool_calls.remove(recorded)
        self.played_calls.add(recorded.call_id)
        decision = recorded.decision
        if decision is not None and not decision.is_allowed:
            refused = decision.rule or decision.code
            place = f"the call of the tool {call.name!r} by {call.agent!r}"
            raise self._differs(place, [Difference("rules", f"refused: {refused}", "allowed")])
        if recorded.failure is not None:
            raise error_of(recorded.failure)
        return result_of(recorded, call.tool)

    def check_offered(self, agent: str, tools: Sequence[Any]) -> None:
        """Raise E93 if an agent has a computer tool, which the SDK starts before any call."""
        if any(isinstance(tool, ComputerTool) for tool in tools):
            reason = f"{agent!r} has a computer tool, which would be started"
            error = NotReplayableError(trace_id=self.recorded.trace_id, reason=reason)
            self._fail(error)
            raise error

    def rejection(self, call: ToolCall) -> Any:
        """Return the recorded message of a rejection by a reviewer; None if the tool ran."""
        recorded = self._recorded_tool_call(call)
        if recorded is None or recorded.decision is not None or recorded.error is not None:
            return None
        self._tool_calls.remove(recorded)
        return recorded.output

    def _recorded_tool_call(self, call: ToolCall) -> ToolCallRecord | None:
        alike = [one for one in self._tool_calls if one.tool.name == call.name or call.name in one.tool.names]
        same_id = [one for one in alike if one.call_id == call.call_id]
        written = getattr(call.tool_context, "tool_arguments", None)
        arguments = plain_arguments(mask(written if isinstance(written, str) else call.arguments))
        equal = [one for one in same_id or alike if plain_arguments(one.arguments) == arguments]
        return next(iter(equal), None)

    def listing(self, server: str) -> Sequence[Any] | str:
        """Return the recorded tools of an MCP server at this point, or why there are none."""
        listings = [one for one in self.recorded.listings if one.server == server]
        if not listings:
            place = f"the MCP server {server!r}"
            raise self._differs(place, [Difference("tools", None, server, "added")])
        now = [one for one in listings if one.before_call <= self._begun]
        found = now[-1] if now else listings[0]
        if found.tools is None:
            return found.reason or "it could not be used in the recorded run"
        from mcp.types import Tool

        return [Tool.model_validate(tool) for tool in found.tools]

    def context(self, agent: str, context: dict[str, Any]) -> None:
        """Restore the recorded values for the next instructions of an agent."""
        call = next((one for _, one in self._model_calls if one.agent == agent), None)
        if call is None:
            return
        context.update((path, value) for path, value in call.context.items() if path not in RESERVED_KEYS)

    def model(self, name: str | None) -> Any:
        """Return a placeholder, never called, for a model without a key or URL."""
        return _stand_in_for(name, [call for _, call in self._model_calls] or self.recorded.model_calls)

    def check_end(self) -> None:
        """Raise E92 if a recorded call was not made."""
        self.check_model_calls()
        if not self._checks.counts("calls"):
            return
        for tool_call in self._tool_calls:
            # Without an allowing decision, middleware, a reviewer or the rules had answered it.
            if tool_call.decision is not None and tool_call.decision.is_allowed:
                place = f"the call of the tool {tool_call.tool.name!r} by {tool_call.agent!r}"
                raise self._differs(place, [Difference("calls", tool_call.arguments, None, "removed")])

    def check_model_calls(self) -> None:
        """Raise E92 if a recorded model call was not made."""
        for at, call in self._model_calls if self._checks.counts("calls") else ():
            place = f"model call {at + 1} of {call.agent!r}"
            raise self._differs(place, [Difference("calls", call.model, None, "removed")])

    def _differs(self, place: str, found: Sequence[Difference]) -> ReplayDifferenceError:
        error = difference_error(place, found)
        self._fail(error)
        return error


def is_part_of_run(tool: Any) -> bool:
    """Return whether a tool only starts or chooses part of the run: a delegation, an agent, a tool search."""
    return bool(
        getattr(tool, IS_OWN_TOOL, False)
        or getattr(tool, "_is_agent_tool", False)
        or getattr(tool, "_agent_instance", None) is not None
    )


def was_made(call: ToolCallRecord) -> bool:
    """Return whether the tool of a call was found."""
    # Calls of tools that the agent lacks end with E21.
    return not (call.error is not None and call.error.code == "E21")


def _is_of(recorded: ModelCallRecord, call: ModelCall) -> bool:
    return recorded.agent == call.agent and recorded.is_internal == call.internal


def _is_again(call: ModelCallRecord, earlier: ModelCallRecord) -> bool:
    return call.model == earlier.model and call.request.hash == earlier.request.hash


def _error_of(recorded: ModelCallRecord) -> Exception:
    if recorded.error is None:
        return RuntimeError("the recorded call has neither an answer nor an error")
    return error_of(recorded.error)


def plain_arguments(text: str) -> bytes:
    """Return arguments in a form for comparison."""
    try:
        return canonical(decode(text))
    except (ValueError, RecursionError):
        return text.encode("utf-8", "surrogatepass")


def _stand_in_for(name: str | None, calls: Sequence[ModelCallRecord]) -> Model:
    call = next((one for one in calls if one.model == name), calls[0] if calls else None)
    url = call.url if call is not None and call.url.startswith("http") else _NOWHERE
    client = AsyncOpenAI(api_key="replay", base_url=url, max_retries=0)
    is_chat = call is not None and call.api == "chat completions"
    known = name if name is not None else (call.model if call is not None else "unknown")
    model: Model = (
        OpenAIChatCompletionsModel(model=known, openai_client=client)
        if is_chat
        else OpenAIResponsesModel(model=known, openai_client=client)
    )
    if call is not None and call.provider is not None:
        register_origin(model, call.provider)
    return model
