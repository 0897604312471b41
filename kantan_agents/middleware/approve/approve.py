"""``Approve``: human approval of tool calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import attrs
from agents import ComputerTool

from kantan_agents.core.interception import Middleware, NamedTools, ToolCall, ToolNext, end_run_with
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.errors import ApprovalStateError, InvalidOptionError, MiddlewareResultError
from kantan_agents.middleware.approve.calls import (
    ApprovalHandler,
    ApprovalRule,
    Approved,
    Edit,
    PendingCall,
    Rejected,
)
from kantan_agents.middleware.approve.waiting_runs import edits_of
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tool_rules.globs import may_match_beginning
from kantan_agents.tools.facts import facts_of_call
from kantan_agents.tools.guards.approvals import add_approval_policy, approval_impossible, can_wait
from kantan_agents.tools.guards.check import denies


class Approve(Middleware):
    """Requires human approval of tool calls before they are made.

    Without a handler, the run stops after a turn with calls that need approval. Resume it later with
    ``pending``, ``to_json`` and ``resume``. With a handler, the run waits for its decision. Either way, the
    tool rules are checked after the decision, against the approved or edited arguments. A tool with
    ``needs_approval`` waits as well. The arguments of shell, patch and custom tools cannot be edited.

    A run fails with E75 if a tool that needs approval could run without it: a hosted tool, which the provider
    calls, or, without a handler, a tool that the SDK cannot pause (local shell, computer). For hosted tools,
    a policy function is called on each turn with empty arguments. The tools of a hosted MCP server are known
    by name if it has ``allowed_tools``.

    Args:
        policy: The calls that need approval: one or more entries as in the ``deny`` list of tool rules, such
            as ``"pay"``, ``"mcp__github__*"`` or ``"bash(git push:*)"``, or a sync or async function that
            takes a ``PendingCall`` and returns a bool. If the model sees a tool of an MCP server under
            another name than the server's, the function is called for both names, and either answer suffices.
            An entry must name a tool of an agent that has this middleware, or of an agent that it can reach;
            otherwise the run fails with E75 before a tool is called. Tools that are hidden, disabled or not
            retrieved count, and ``"*"`` names all. If some tools cannot be known in advance (a handoff that
            selects its target at run time, a server that cannot be listed, a ``tool_filter`` function), an
            unknown name is only logged as a warning, once for each run.
        handler: ``async def handler(call: PendingCall) -> Approved | Rejected``. It is called concurrently
            for parallel tool calls.

    Raises:
        InvalidOptionError: E75, ``policy`` or ``handler`` has another type.
    """

    def __init__(
        self, policy: str | Iterable[str] | ApprovalRule, handler: ApprovalHandler | None = None
    ) -> None:
        self._rule: ApprovalRule | None = policy if callable(policy) else None
        self.named_tools = None if callable(policy) else NamedTools("policy", _checked_names(policy))
        if handler is not None and not callable(handler):
            raise InvalidOptionError(option="handler", reason=f"must be an async function, not {handler!r}")
        self._handler = handler

    passes_edits_on = True
    """``decide`` requires it for edited arguments."""

    async def run(self, run: Run, call_next: Next) -> None:
        """Register the policy, and load edited arguments."""
        run.state[self] = edits_of(run.input)
        add_approval_policy(run, self)
        await call_next(run)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Call the handler, if any, and make the call with the approved arguments.

        Raises:
            MiddlewareResultError: E80, no decision, or a rejected computer action, whose image cannot carry
                the reason.
            InvalidOptionError: E75, approval is needed, but there is no handler and the SDK cannot pause the
                call.
            ApprovalStateError: E85, the arguments were edited for another call with this id.
        """
        edit: Edit | None = call.run.state.get(self, {}).get(call.call_id)
        if edit is not None:
            call.arguments = _edited_arguments(call, edit)
        elif self._handler is not None and await self._requires(call):
            if call.run._tape is not None:  # a replay does not call the handler
                rejection = call.run._tape.rejection(call)
                return await call_next(call) if rejection is None else rejection
            decision: Any = self._handler(_pending(call))
            decision = await decision if inspect.isawaitable(decision) else decision
            if isinstance(decision, Rejected):
                return _rejection_text(call, decision)
            if not isinstance(decision, Approved):
                reason = f"the handler must return Approved or Rejected, not {decision!r}"
                raise MiddlewareResultError(middleware="Approve", reason=reason)
            if decision.arguments is not None:
                call.arguments = decision.arguments
        elif self._handler is None and not can_wait(call.tool) and await self._requires(call):
            error = approval_impossible(call.name, "the SDK cannot pause it; give Approve a handler")
            end_run_with(call.run, error)
            raise error
        return await call_next(call)

    async def _requires(self, call: ToolCall) -> bool:
        return await self._requires_approval(_pending(call), facts_of_call(call))

    @property
    def asks_while_called(self) -> bool:
        """Whether a handler approves calls during the run."""
        return self._handler is not None

    def concerns(self, tool: ToolFacts) -> bool:
        """Whether calls of the tool may need approval."""
        return self.named_tools is None or self.named_tools.concerns(tool)

    def may_concern_tools_of(self, server: str) -> bool:
        """Whether the policy may name tools of a hosted MCP server that does not list them.

        Args:
            server: The prefix of its tools' names.
        """
        names = self.named_tools
        return names is not None and (
            bool(names.unmatched) or any(may_match_beginning(entry, server) for entry in names.entries)
        )

    async def needs_approval(self, agent: str, tool: ToolFacts, arguments: str, call_id: str) -> bool:
        """Whether this call needs approval."""
        call = PendingCall(call_id, tool.name, arguments, agent, names=tool.names)
        return await self._requires_approval(call, tool)

    async def _requires_approval(self, call: PendingCall, tool: ToolFacts) -> bool:
        if self.named_tools is not None:
            return await denies(self.named_tools.rules, tool, call.arguments)
        if await self._asks_for(call):
            return True
        own = tool.origin.chosen if tool.origin is not None else None
        # The model may see the name with a prefix, today or only while another server has such a tool.
        return own is not None and own != call.tool and await self._asks_for(attrs.evolve(call, tool=own))

    async def _asks_for(self, call: PendingCall) -> bool:
        if self._rule is None:
            raise TypeError("an Approve has either names or a function as its policy")
        answer: Any = self._rule(call)
        answer = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(answer, bool):
            reason = f"the policy must return True or False, not {answer!r}"
            raise MiddlewareResultError(middleware="Approve", reason=reason)
        return answer


def _pending(call: ToolCall) -> PendingCall:
    names = tuple(dict.fromkeys((call.name, *facts_of_call(call).names)))
    return PendingCall(call.call_id, call.name, call.arguments, call.agent, names=names)


def _edited_arguments(call: ToolCall, edit: Edit) -> str:
    # The call as the model wrote it: a middleware may have replaced `call.arguments`.
    made = call.tool_context
    if (getattr(made, "tool_name", None), getattr(made, "tool_arguments", None)) == (edit.tool, edit.written):
        return edit.arguments
    error = ApprovalStateError(
        reason=f"the arguments for {call.call_id!r} were edited for another call of {edit.tool!r}"
    )
    end_run_with(call.run, error)
    raise error


def _rejection_text(call: ToolCall, rejected: Rejected) -> str:
    """A computer action returns an image, which cannot carry the reason, so its rejection fails the run."""
    if not isinstance(call.tool, ComputerTool):
        return rejected.reason
    reason = f"what a computer does was rejected, which ends the run: {rejected.reason}"
    error = MiddlewareResultError(middleware="Approve", reason=reason)
    end_run_with(call.run, error)
    raise error


def _checked_names(policy: Any) -> tuple[str, ...]:
    names = (policy,) if isinstance(policy, str) else policy
    if isinstance(names, Iterable):
        named = tuple(names)
        if named and all(isinstance(name, str) and name for name in named):
            return named
    raise InvalidOptionError(option="policy", reason=f"must be names of tools or a function, not {policy!r}")
