"""``Approve``: tool calls that a human must agree to."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from agents import ComputerTool

from kantan_agents.errors import InvalidOptionError, MiddlewareResultError
from kantan_agents.interception import Middleware, ToolCall, ToolNext, end_run_with
from kantan_agents.middleware.approve.calls import (
    ApprovalHandler,
    ApprovalRule,
    Approved,
    PendingCall,
    Rejected,
)
from kantan_agents.middleware.approve.state import edits_of
from kantan_agents.pipeline import Next, Run
from kantan_agents.tools.guards.approvals import add_approval_policy, approval_impossible, can_wait


class Approve(Middleware):
    """Has a human agree to tool calls before they are made.

    Without a handler the run ends where an approval is needed, and is resumed later: see ``pending``,
    ``to_json`` and ``resume``. With one it waits for the handler's decision. Whatever is decided, the tool
    rules are asked afterwards, about the arguments as they are then.

    Args:
        policy: Which calls need an approval: a tool's name or several, which may be patterns such as
            ``"delete_*"``; or a function of the ``PendingCall``, sync or async.
        handler: ``async def handler(call: PendingCall) -> Approved | Rejected``. Calls that are made at the
            same time are asked about at the same time.

    What would be run without anybody being asked ends the run (E75): a tool of the provider's, of which no
    call comes by here, and without a handler a call that the SDK cannot have wait (local shell, computer). A
    function is asked about a tool of the provider's at each turn, with empty arguments.

    Raises:
        InvalidOptionError: E75, the policy or the handler is none.
    """

    def __init__(
        self, policy: str | Iterable[str] | ApprovalRule, handler: ApprovalHandler | None = None
    ) -> None:
        self._rule: ApprovalRule | None = None
        self._patterns: tuple[str, ...] = ()
        if callable(policy):
            self._rule = policy
        else:
            self._patterns = _checked_patterns(policy)
        if handler is not None and not callable(handler):
            raise InvalidOptionError(option="handler", reason=f"must be an async function, not {handler!r}")
        self._handler = handler

    passes_edits_on = True
    """Edited arguments of a resumed run are looked for by this mark."""

    async def run(self, run: Run, call_next: Next) -> None:
        """Have the SDK ask this policy, and take over what was decided about a run that is resumed."""
        run.state[self] = edits_of(run.input)
        add_approval_policy(run, self)
        await call_next(run)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Ask the handler, if there is one, and make the call with the arguments that were approved.

        Raises:
            MiddlewareResultError: E80, the handler has returned no decision, or has rejected what a computer
                does: the result is a picture, so the model cannot be told.
            InvalidOptionError: E75, the call needs an approval that nobody can be asked for.
        """
        edited = call.run.state.get(self, {}).get(call.call_id)
        if edited is not None:
            call.arguments = edited
        elif self._handler is not None and await self._asks(_pending(call)):
            decision: Any = self._handler(_pending(call))
            decision = await decision if inspect.isawaitable(decision) else decision
            if isinstance(decision, Rejected):
                return _told(call, decision)
            if not isinstance(decision, Approved):
                reason = f"the handler must return Approved or Rejected, not {decision!r}"
                raise MiddlewareResultError(middleware="Approve", reason=reason)
            if decision.arguments is not None:
                call.arguments = decision.arguments
        elif self._handler is None and not can_wait(call.tool) and await self._asks(_pending(call)):
            error = approval_impossible(call.name, "the SDK cannot have it wait; give Approve a handler")
            end_run_with(call.run, error)
            raise error
        return await call_next(call)

    @property
    def asks_while_called(self) -> bool:
        """Whether a handler is asked when a tool is called."""
        return self._handler is not None

    def concerns(self, tool: str) -> bool:
        """Whether calls of a tool of this name may need an approval."""
        return self._rule is not None or any(fnmatchcase(tool, pattern) for pattern in self._patterns)

    async def needs_approval(self, agent: str, tool: str, arguments: str, call_id: str) -> bool:
        """Whether this call needs an approval."""
        return await self._asks(PendingCall(call_id, tool, arguments, agent))

    async def _asks(self, call: PendingCall) -> bool:
        if self._rule is None:
            return self.concerns(call.tool)
        answer: Any = self._rule(call)
        answer = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(answer, bool):
            reason = f"the policy must return True or False, not {answer!r}"
            raise MiddlewareResultError(middleware="Approve", reason=reason)
        return answer


def _pending(call: ToolCall) -> PendingCall:
    return PendingCall(call.call_id, call.name, call.arguments, call.agent)


def _told(call: ToolCall, rejected: Rejected) -> str:
    """Return what the model is told of a rejection."""
    if not isinstance(call.tool, ComputerTool):
        return rejected.reason
    reason = f"what a computer does was rejected, which ends the run: {rejected.reason}"
    error = MiddlewareResultError(middleware="Approve", reason=reason)
    end_run_with(call.run, error)
    raise error


def _checked_patterns(policy: Any) -> tuple[str, ...]:
    patterns = (policy,) if isinstance(policy, str) else policy
    if isinstance(patterns, Iterable):
        named = tuple(patterns)
        if named and all(isinstance(name, str) and name for name in named):
            return named
    raise InvalidOptionError(option="policy", reason=f"must be names of tools or a function, not {policy!r}")
