"""One call of a tool by a user: what the SDK does around the call of a model, without the model."""

from __future__ import annotations

import copy
import uuid
from typing import Any

import attrs
from agents import (
    FunctionTool,
    RunContextWrapper,
    SpanError,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolInputGuardrailResult,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailData,
    ToolOutputGuardrailResult,
    ToolOutputGuardrailTripwireTriggered,
    function_span,
)
from agents.agent_tool_state import peek_agent_tool_run_result
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from kantan_agents.bridge import SDKAgent
from kantan_agents.errors import CommandNotRunnableError, code_of
from kantan_agents.interception import ToolCall, asking_rules, note_failure, pending_error, tool_call_made
from kantan_agents.middleware.slash_commands.rules import UserGuard
from kantan_agents.pipeline import Run
from kantan_agents.tools.guards.failures import Failures


@attrs.define(eq=False)
class Outcome:
    """What came of a call.

    Attributes:
        call: The call, as a model would have made it.
        output: What the tool returned, or what a guardrail put in its place.
        input_results: What the tool's input guardrails said.
        output_results: What its output guardrails said.
    """

    call: ResponseFunctionToolCall
    output: Any = None
    input_results: list[ToolInputGuardrailResult] = attrs.field(factory=list)
    output_results: list[ToolOutputGuardrailResult] = attrs.field(factory=list)


class UserCall:
    """One call of a function tool, made for a user.

    Args:
        run: The run.
        agent: The SDK agent whose tool it is.
        tool: The tool as it was given, without the guard for models.
        guard: Asks the rules for users.
        wrapper: The SDK's context of the run.
        command: The command, with its prefix, for errors.
    """

    def __init__(
        self,
        run: Run,
        agent: SDKAgent,
        tool: FunctionTool,
        guard: UserGuard,
        wrapper: RunContextWrapper[Any],
        command: str,
    ) -> None:
        self._run = run
        self._agent = agent
        self._tool = tool
        self._guard = guard
        self._wrapper = wrapper
        self._command = command
        # What the tool raises is for the user to see, not to be made a text for a model.
        self._raising = copy.copy(tool)
        self._raising.on_invoke_tool = Failures(tool, tool.on_invoke_tool).invoke

    async def make(self, text: str) -> Outcome:
        """Make the call, on a span of its own and through the middleware of the run.

        Args:
            text: The arguments, JSON text.

        Raises:
            KantanAgentsError: The rules refuse it (E8, E10 to E14, ...), or it cannot be made (E56).
            Exception: What the tool, a guardrail or a middleware raised.
        """
        run, config = self._run, self._run.run_config
        outcome = Outcome(self._as_called(text))
        sensitive = bool(config.trace_include_sensitive_data)
        with function_span(
            self._tool.qualified_name,
            input=text if sensitive else None,
            disabled=bool(config.tracing_disabled),
        ) as span:
            context = ToolContext.from_agent_context(
                self._wrapper,
                outcome.call.call_id,
                tool_call=outcome.call,
                agent=self._agent,
                run_config=config,
            )
            call = ToolCall(
                run, run.agent.name, self._tool, self._guard.facts.name, text, outcome.call.call_id, context
            )

            async def invoke(given: ToolCall) -> Any:
                with asking_rules(given):
                    await self._guard.require(given.tool_context, given.arguments)
                return await self._invoked(given, outcome)

            try:
                outcome.output = await tool_call_made(run, call, invoke)
                _raise_pending(run)
            except Exception as error:
                span.set_error(_span_error(self._tool.name, error, sensitive=sensitive))
                raise
            if sensitive:
                span.span_data.output = outcome.output
        return outcome

    def _as_called(self, arguments: str) -> ResponseFunctionToolCall:
        namespace = getattr(self._tool, "_tool_namespace", None)
        more = {"namespace": namespace} if isinstance(namespace, str) else {}
        return ResponseFunctionToolCall(
            type="function_call",
            call_id=f"call_{uuid.uuid4().hex}",
            name=self._tool.name,
            arguments=arguments,
            **more,  # type: ignore[arg-type]  # of newer versions of openai
        )

    async def _invoked(self, given: ToolCall, outcome: Outcome) -> Any:
        context = given.tool_context
        rejection = await self._rejected_input(context, outcome)
        if rejection is not None:
            return rejection
        hooks = [found for found in (self._run.options.get("hooks"), self._agent.hooks) if found is not None]
        for one in hooks:
            await one.on_tool_start(context, self._agent, self._tool)
        try:
            output = await invoke_function_tool(
                function_tool=self._raising, context=context, arguments=given.arguments
            )
        except Exception as error:
            note_failure(given, error)
            raise
        if getattr(peek_agent_tool_run_result(outcome.call), "interruptions", None):
            reason = "an agent behind it waits for an approval, and a command cannot be resumed"
            raise CommandNotRunnableError(command=self._command, reason=reason)
        output = await self._checked_output(context, output, outcome)
        for one in hooks:
            await one.on_tool_end(context, self._agent, self._tool, output)
        return output

    async def _rejected_input(self, context: ToolContext[Any], outcome: Outcome) -> str | None:
        for guardrail in self._tool.tool_input_guardrails or ():
            said = await guardrail.run(ToolInputGuardrailData(context=context, agent=self._agent))
            outcome.input_results.append(ToolInputGuardrailResult(guardrail=guardrail, output=said))
            if said.behavior["type"] == "raise_exception":
                raise ToolInputGuardrailTripwireTriggered(guardrail=guardrail, output=said)
            if (message := _rejection(said)) is not None:
                return message
        return None

    async def _checked_output(self, context: ToolContext[Any], output: Any, outcome: Outcome) -> Any:
        for guardrail in self._tool.tool_output_guardrails or ():
            data = ToolOutputGuardrailData(context=context, agent=self._agent, output=output)
            said = await guardrail.run(data)
            outcome.output_results.append(ToolOutputGuardrailResult(guardrail=guardrail, output=said))
            if said.behavior["type"] == "raise_exception":
                raise ToolOutputGuardrailTripwireTriggered(guardrail=guardrail, output=said)
            if (message := _rejection(said)) is not None:
                return message
        return output


def _raise_pending(run: Run) -> None:
    error = pending_error(run)
    if error is not None:  # of a middleware, or of a run that the tool has begun
        raise error


def _rejection(said: ToolGuardrailFunctionOutput) -> str | None:
    return said.behavior["message"] if said.behavior["type"] == "reject_content" else None


def _span_error(tool: str, error: Exception, *, sensitive: bool) -> SpanError:
    data: dict[str, Any] = {"tool_name": tool, "error_type": type(error).__name__}
    if code_of(error) is not None:
        data["code"] = code_of(error)
    if sensitive:
        data["error"] = str(error)
    return SpanError(message="Error running tool", data=data)
