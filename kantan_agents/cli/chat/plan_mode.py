"""Plan mode: agents only read until the user agrees."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

from agents import FunctionTool, ModelResponse, RunState, ToolSearchTool, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from kantan_agents.cli.chat.answer_view import call_line
from kantan_agents.cli.chat.editor import PROMPT, Editor
from kantan_agents.cli.chat.plan_entries import read_entries
from kantan_agents.cli.chat.plan_question import PlanQuestion
from kantan_agents.cli.chat.plan_tool import (
    AGREED_BEFORE,
    NAME,
    NO_PERSON,
    ONE_PLAN,
    agreed,
    as_answer,
    not_agreed,
    not_shown,
    plan_tool,
    refusal,
)
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.approvals import ApprovalAnswer
from kantan_agents.cli.terminal.console import BAD
from kantan_agents.cli.terminal.standing_approvals import GivenApprovals
from kantan_agents.core.interception import (
    Layers,
    Middleware,
    ModelCall,
    ModelNext,
    ToolCall,
    ToolNext,
    current_tool_call,
    layers_of,
    make_call,
)
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.middleware.approve.calls import PendingCall
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.toolkit.checked_tool import bad_input
from kantan_agents.toolkit.protected import names_protected
from kantan_agents.tools.facts import facts_of_call, facts_of_listed
from kantan_agents.tools.guards.approvals import can_wait
from kantan_agents.tools.guards.functions import guard_function
from kantan_agents.tools.offered import offer_tool
from kantan_agents.tools.read_only import is_read_only
from kantan_agents.tools.server_names import server_of

_NO_APPROVALS: Final = GivenApprovals.of(())


class PlanMode(Middleware):
    """Denies model calls that may change something, and offers ``ExitPlanMode``.

    The mode at the time of the model request decides about a call: an agreement has no effect on calls made
    together with ``ExitPlanMode``.
    """

    def __init__(self, *, is_on: bool = False, named: Collection[str] = ()) -> None:
        self.is_on = is_on
        self._screen: Screen | None = None
        self._ask: PlanQuestion | None = None  # without it, no one can agree, and the plan is the answer
        self.layers: Layers = layers_of([("plan mode", self)])
        self._named = GivenApprovals.of(named, "--plan-tool")
        self._granted = _NO_APPROVALS
        self._agreed: GivenApprovals | None = None  # from the next model request on
        self._known: frozenset[str] = frozenset()
        self._is_asking = False
        self._answer: str | None = None
        self._tool = plan_tool(self._propose)
        self._guarded = guard_function(self._tool)

    def ask_at(self, editor: Editor | None, screen: Screen, stop: Callable[[], None], place: str) -> None:
        """Ask about plans; without an editor, no one can agree."""
        self._screen = screen
        self._ask = None if editor is None else PlanQuestion(editor, screen, stop, place)

    @property
    def offered(self) -> FunctionTool | None:
        """The tool that plan mode adds, or None."""
        return self._guarded if self.is_on and self._agreed is None else None

    def enter(self) -> None:
        """Turn it on and revoke permissions."""
        self.forget()
        self.is_on = True

    def leave(self) -> None:
        """Turn it off without a plan."""
        self._agreed, self.is_on = None, False

    def forget(self) -> None:
        """Revoke all permissions of the conversation."""
        self._granted, self._agreed = _NO_APPROVALS, None

    def prompt(self) -> str:
        """Return the prompt for the next message."""
        self._settle()
        return f"plan{PROMPT}" if self.is_on else PROMPT

    async def decide(
        self, call: PendingCall, tool: Any, facts: ToolFacts, is_protected: bool
    ) -> ApprovalAnswer | None:
        """Decide on a call that waits for an approval, as ``FirstDecision``."""
        if self.is_on and not self._permits(call, tool, facts):
            if self._screen is not None:
                async with self._screen.lock:
                    self._screen.line(call_line(call.tool, "refused: plan mode", call.arguments, BAD))
            error = refusal(call.tool, of_subagent=current_tool_call.get() is not None)
            return ApprovalAnswer("no", str(error))
        if is_protected or names_protected(str(call.values.get("command", ""))):
            return None
        is_granted = not self.is_on and self._granted.cover(call, facts, is_protected=False)
        return ApprovalAnswer("yes") if is_granted else None

    async def run(self, run: Run, call_next: Next) -> None:
        """Offer ``ExitPlanMode`` to the main agent."""
        if _is_outermost(run):
            offer_tool(run, lambda: self.offered)
            if not isinstance(run.input, RunState):
                self._answer = None
        await call_next(run)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Hide tools whose calls cannot be denied; if no one can agree, answer with the plan."""
        if _is_outermost(call.run):  # all earlier calls of the model have ended
            self._settle()
            answer, self._answer = self._answer, None
            if answer is not None:
                return _response(answer)
        if self.is_on:
            if _is_outermost(call.run):
                self._known = frozenset(name for tool in call.tools for name in _names_of(tool))
            call.tools = [tool for tool in call.tools if self._may_be_shown(tool)]
        return await call_next(call)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Allow calls that only read, or that the user permitted or made."""
        if call.tool is self._tool:  # regardless of rules; hooks may deny it
            return await make_call(
                call, partial(self._tool.on_invoke_tool, call.tool_context, call.arguments)
            )
        if not self.is_on or call.by_user or self._permits(*_seen(call)):
            return await call_next(call)
        error = call.refusal = refusal(call.name, of_subagent=call.run.parent_run is not None)
        return str(error)

    def _settle(self) -> None:
        if self._agreed is not None:
            self._granted, self._agreed, self.is_on = self._agreed, None, False

    def _permits(self, call: PendingCall, tool: Any, facts: ToolFacts) -> bool:
        return is_read_only(tool) or self._named.cover(call, facts, is_protected=False)

    def _may_be_shown(self, tool: Any) -> bool:
        if can_wait(tool) or isinstance(tool, ToolSearchTool):
            return True
        return not self._named.names.isdisjoint(facts_of_listed(tool).names)

    async def _propose(self, wrapper: Any, given: dict[str, Any]) -> str:
        if self._agreed is not None or not self.is_on:
            return AGREED_BEFORE
        if self._is_asking or self._answer is not None:
            return ONE_PLAN
        plan = given["plan"].strip()
        if not plan:
            raise bad_input(NAME, "the plan is empty")
        entries, problems = read_entries(given.get("permissions") or (), self._known)
        if problems:
            return not_shown(problems)
        if self._ask is None:
            self._answer = as_answer(plan, entries)
            return NO_PERSON
        self._is_asking = True
        try:
            answer = await self._ask(getattr(wrapper.agent, "name", NAME), plan, entries)
        finally:
            self._is_asking = False
        if answer.decision == "no":
            return not_agreed(answer.reason)
        granted = [entry.text for entry in entries] if answer.decision == "yes" else []
        self._agreed = GivenApprovals.of(granted)
        return agreed(granted)


def _is_outermost(run: Run) -> bool:
    return run.parent_run is None and current_tool_call.get() is None


def _seen(call: ToolCall) -> tuple[PendingCall, Any, ToolFacts]:
    facts = facts_of_call(call)
    names = facts.names
    if server_of(call.tool) is not None:
        names = tuple(facts.origin.prefixed) if facts.origin is not None else ()
        facts = ToolFacts(names or ("",), guessed=True)
    return PendingCall(call.call_id, call.name, call.arguments, call.agent, names=names), call.tool, facts


def _names_of(tool: Any) -> Iterator[str]:
    if isinstance(tool, FunctionTool):
        facts = facts_of_listed(tool)
        names = facts.names if facts.origin is None else facts.origin.names
        yield from (name for name in names if facts.origin is None or name != facts.origin.own)


def _response(text: str) -> ModelResponse:
    content: list[Any] = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    message = ResponseOutputMessage(
        id=f"msg_{uuid.uuid4().hex}", content=content, role="assistant", status="completed", type="message"
    )
    return ModelResponse(output=[message], usage=Usage(), response_id=None)
