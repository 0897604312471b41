"""Runs an agent for one answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from agents import RunConfig

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation.approvals import answer_approvals
from kantan_agents.cli.chat.activity import ticking
from kantan_agents.cli.chat.answer_view import AnswerView
from kantan_agents.cli.chat.ending import ChatEnding
from kantan_agents.cli.chat.kept_conversation import KeptConversation
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.progress import AnswerProgress
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.steps import StepLists, steps_of
from kantan_agents.cli.terminal.agent_options import AgentRunOptions
from kantan_agents.cli.terminal.approvals import Ask, AskedApprovals
from kantan_agents.core.interception import inherited_layers
from kantan_agents.errors import KantanAgentsError, StreamUsageError


class AnswerRunner:
    """Runs agents, one at a time."""

    def __init__(
        self, screen: Screen, ending: ChatEnding, ask: Ask, plan: PlanMode, options: AgentRunOptions
    ) -> None:
        self._screen = screen
        self._ending = ending
        self._plan = plan
        self._options = options
        self._approvals = AskedApprovals(ask, self.stop, options.approved or (), plan.decide)
        self._stop: Callable[[], None] = _nothing

    def stop(self) -> None:
        """Cancel the current answer."""
        self._stop()

    def forget_approvals(self) -> None:
        """Forget the conversation's approvals."""
        self._approvals.forget()
        self._plan.forget()

    async def run(
        self,
        agent: Agent[Any],
        given: Any,
        context: dict[str, Any],
        kept: KeptConversation,
        progress: AnswerProgress,
        keep: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Run an agent until no call waits for an approval; None if the user canceled.

        ``keep`` is called after each tool call. It is None for agents without tools, to which plan mode does
        not apply.
        """
        view = AnswerView(self._screen, partial(_rule_of, agent, context), StepLists(steps_of(kept) or ()))
        token = answer_approvals.set(self._approvals.decide_inside)
        outer = inherited_layers.get()
        around = inherited_layers.set(outer if keep is None else self._plan.layers.inside(outer))
        try:
            while True:
                async with (
                    ticking(self._screen, view.show_status),
                    agent.stream(
                        given,
                        context,
                        run_config=RunConfig(group_id=kept.id),
                        **self._options.turns_of(agent),
                    ) as run,
                ):
                    self._stop = run.cancel
                    try:
                        with self._ending.interrupting(run.cancel):
                            async for event in run:
                                async with self._screen.lock:
                                    view.show(event, run.id)
                                if event.run_id == run.id and progress.see(event) and keep is not None:
                                    await keep()
                    finally:
                        self._screen.end_answer()
                    try:
                        result = run.context["result"]
                    except StreamUsageError:  # canceled
                        return None
                given = await self._approvals.decide(result)
                if self._approvals.was_stopped:
                    return None
                if given is None:
                    return result
        finally:
            self._stop = _nothing
            answer_approvals.reset(token)
            inherited_layers.reset(around)


def _nothing() -> None:
    pass


def _rule_of(agent: Agent[Any], context: dict[str, Any], tool: str, arguments: str) -> str | None:
    try:
        explanation = agent.explain_tool(tool, arguments or None, context)
    except KantanAgentsError:  # the rules are invalid, as the denial states
        return None
    if explanation.allowed:
        return None  # another agent denied it, after a handoff
    return f"{explanation.rule}, in {explanation.layer}" if explanation.layer else explanation.rule
