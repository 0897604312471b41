"""``UserCall``: a tool call for a user."""

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

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.core.interception import (
    ToolCall,
    checking_rules,
    error_message,
    make_call,
    pending_error,
    record_failure,
    run_tool_call,
)
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import CommandNotRunnableError, code_of
from kantan_agents.middleware.slash_commands.rules import UserGuard
from kantan_agents.tools.guards.failures import Failures


@attrs.define(eq=False)
class Outcome:
    """The outcome of a tool call.

    ``output`` may be the message of a guardrail that rejected the call or its output.
    """

    tool: FunctionTool
    call: ResponseFunctionToolCall
    output: Any = None
    input_results: list[ToolInputGuardrailResult] = attrs.field(factory=list)
    output_results: list[ToolOutputGuardrailResult] = attrs.field(factory=list)


class UserCall:
    """A tool call for a user, with the guardrails, hooks and trace span of the SDK.

    ``tool`` is the original tool, without the guard for models; ``command`` has its prefix.
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
        # The user sees the tool's exception; the SDK would turn it into text for a model.
        self._raising = copy.copy(tool)
        self._raising.on_invoke_tool = Failures(tool, tool.on_invoke_tool).invoke

    async def make(self, text: str) -> Outcome:
        """Make the call through the middleware of the run.

        E8, E10 to E14 if the rules deny it, E56 if it is impossible.
        """
        run, config = self._run, self._run.run_config
        outcome = Outcome(self._tool, self._model_call_item(text))
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
            call.by_user = True

            async def invoke(given: ToolCall) -> Any:
                with checking_rules(given):
                    await self._guard.require(given.tool_context, given.arguments)
                return await self._invoke(given, outcome)

            try:
                outcome.output = await run_tool_call(run, call, invoke)
                _raise_pending(run)
            except Exception as error:
                span.set_error(_span_error(run, self._tool.name, error, sensitive=sensitive))
                raise
            if sensitive:
                span.span_data.output = outcome.output
        return outcome

    def _model_call_item(self, arguments: str) -> ResponseFunctionToolCall:
        namespace, journal = getattr(self._tool, "_tool_namespace", None), self._run._journal
        more = {"namespace": namespace} if isinstance(namespace, str) else {}
        return ResponseFunctionToolCall(
            type="function_call",
            call_id=f"call_{uuid.uuid4().hex if journal is None else journal.new_id()}",
            name=self._tool.name,
            arguments=arguments,
            **more,  # type: ignore[arg-type]  # of newer versions of openai
        )

    async def _invoke(self, given: ToolCall, outcome: Outcome) -> Any:
        context = given.tool_context
        rejection = await self._check_input(context, outcome)
        if rejection is not None:
            return rejection
        hooks = [hook for hook in (self._run.options.get("hooks"), self._agent.hooks) if hook is not None]
        for hook in hooks:
            await hook.on_tool_start(context, self._agent, self._tool)
        try:
            output = await make_call(
                given,
                lambda: invoke_function_tool(
                    function_tool=self._raising, context=context, arguments=given.arguments
                ),
            )
        except Exception as error:
            record_failure(given, error)
            raise
        if getattr(peek_agent_tool_run_result(outcome.call), "interruptions", None):
            reason = "the agent that it runs waits for an approval, and a command cannot be resumed"
            raise CommandNotRunnableError(command=self._command, reason=reason)
        output = await self._check_output(context, output, outcome)
        for hook in hooks:
            await hook.on_tool_end(context, self._agent, self._tool, output)
        return output

    async def _check_input(self, context: ToolContext[Any], outcome: Outcome) -> str | None:
        for guardrail in self._tool.tool_input_guardrails or ():
            result = await guardrail.run(ToolInputGuardrailData(context=context, agent=self._agent))
            outcome.input_results.append(ToolInputGuardrailResult(guardrail=guardrail, output=result))
            if result.behavior["type"] == "raise_exception":
                raise ToolInputGuardrailTripwireTriggered(guardrail=guardrail, output=result)
            if (message := _rejection(result)) is not None:
                return message
        return None

    async def _check_output(self, context: ToolContext[Any], output: Any, outcome: Outcome) -> Any:
        for guardrail in self._tool.tool_output_guardrails or ():
            data = ToolOutputGuardrailData(context=context, agent=self._agent, output=output)
            result = await guardrail.run(data)
            outcome.output_results.append(ToolOutputGuardrailResult(guardrail=guardrail, output=result))
            if result.behavior["type"] == "raise_exception":
                raise ToolOutputGuardrailTripwireTriggered(guardrail=guardrail, output=result)
            if (message := _rejection(result)) is not None:
                return message
        return output


def _raise_pending(run: Run) -> None:
    error = pending_error(run)
    if error is not None:  # raised by a middleware or in a run that the tool started
        raise error


def _rejection(result: ToolGuardrailFunctionOutput) -> str | None:
    return result.behavior["message"] if result.behavior["type"] == "reject_content" else None


def _span_error(run: Run, tool: str, error: Exception, *, sensitive: bool) -> SpanError:
    data: dict[str, Any] = {"tool_name": tool, "error_type": type(error).__name__}
    if code_of(error) is not None:
        data["code"] = code_of(error)
    if sensitive:
        data["error"] = error_message(run, error)
    return SpanError(message="Error running tool", data=data)
