"""Asks for approvals of tool calls."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread
import attrs
from agents import RunState

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.standing_approvals import GivenApprovals, StandingApproval, standing_approval
from kantan_agents.middleware.approve.calls import PendingCall, Rejected
from kantan_agents.middleware.approve.waiting_runs import pending_call
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tool_rules.origins import SERVER_PREFIX, SHOWN_PREFIX
from kantan_agents.tools.facts import facts_of_listed

if TYPE_CHECKING:
    from kantan_agents.toolkit.files.editing.changes import FileChange

REFUSED = "The user did not approve this call."


@attrs.frozen
class ApprovalAnswer:
    """The decision; ``"always"`` also approves later similar calls."""

    decision: Literal["yes", "no", "always"]
    reason: str = ""


@attrs.frozen
class AskedCall:
    """A call to decide.

    Attributes:
        change: Its change of a file, if any.
        protected: The protected path that it names, and why it is protected.
        always: The scope of "always"; None if each call needs a separate answer.
    """

    call: PendingCall
    change: FileChange | None = None
    protected: tuple[str, str] | None = None
    always: StandingApproval | None = None


Ask = Callable[[AskedCall], Awaitable[ApprovalAnswer | None]]
"""Asks about a call; returns None if the user canceled the answer."""


FirstDecision = Callable[[PendingCall, Any, ToolFacts, bool], Awaitable[ApprovalAnswer | None]]
"""Decides before the user, or returns None."""


def approving(asked: AskedCall) -> str:
    """Return the value of ``--yes`` for such calls."""
    name = one_line(asked.call.tool)
    return name if asked.protected is None else shlex.quote(f"{name}({one_line(asked.protected[0])})")


class AskedApprovals:
    """Decides on waiting calls, ``first`` before all else.

    For a protected file, only an entry of ``approved`` with its path counts.
    """

    def __init__(
        self,
        ask: Ask,
        stop: Callable[[], None],
        approved: Collection[str] = (),
        first: FirstDecision | None = None,
    ) -> None:
        self._ask = ask
        self._first = first
        self._stop = stop
        self._approved = GivenApprovals.of(approved)
        self._always: set[StandingApproval] = set()
        self.was_stopped = False

    def forget(self) -> None:
        """Revoke the conversation's approvals."""
        self._always.clear()

    async def decide(self, result: Any) -> RunState[Any, Any] | None:
        """Return the state of a paused run with all decisions; None if no call waits.

        None and a set ``was_stopped`` mean that the user canceled the answer.
        """
        self.was_stopped = False
        if not getattr(result, "interruptions", None):
            return None
        state: RunState[Any, Any] = result.to_state()
        for item in state.get_interruptions():
            answer = await self.answer(_named_call(item), _tool_of(item))
            if answer is None:
                self.was_stopped = True
                return None
            if answer.decision == "no":
                message = f"{REFUSED} The reason: {answer.reason}" if answer.reason else REFUSED
                state.reject(item, rejection_message=Rejected(message).reason)
            else:
                state.approve(item)
        return state

    async def decide_inside(self, result: Any) -> RunState[Any, Any] | None:
        """Decide for a nested run, which ends with its parent."""
        state = await self.decide(result)
        if self.was_stopped:
            self._stop()
            await anyio.sleep_forever()  # until the run is canceled
        return state

    async def answer(self, call: PendingCall, tool: Any) -> ApprovalAnswer | None:
        """Return the answer about a call, or None."""
        facts = ToolFacts(call.names, guessed=True) if tool is None else facts_of_listed(tool)
        change, protected = await anyio.to_thread.run_sync(partial(_change, tool, call))
        if self._first is not None:
            decided = await self._first(call, tool, facts, protected is not None)
            if decided is not None:
                return decided
        if self._approved.cover(call, facts, is_protected=protected is not None):
            return ApprovalAnswer("yes")
        if protected is not None:
            return await self._ask(AskedCall(call, change, protected))
        if any(standing.covers(call, facts) for standing in self._always):
            return ApprovalAnswer("yes")
        always = standing_approval(call, facts)
        answer = await self._ask(AskedCall(call, change, always=always))
        if answer is not None and answer.decision == "always":
            self._always.add(always)
        return answer


def _change(tool: Any, call: PendingCall) -> tuple[FileChange | None, tuple[str, str] | None]:
    # Imported here: many chats have no call that needs an approval.
    from kantan_agents.toolkit.files.editing.changes import change_of
    from kantan_agents.toolkit.protected import named_protected

    change = change_of(tool, call.values)
    if change is not None:
        return change, None if change.protected is None else (change.path, change.protected)
    # The sandbox protects files from commands.
    return None, None if call.tool == "Bash" else named_protected(call.values.values())


def _tool_of(item: Any) -> Any:
    """Return a call's tool; None for an MCP tool, since the server chose its name."""
    if getattr(getattr(item, "tool_origin", None), "mcp_server_name", None) is not None:
        return None
    tools = getattr(item.agent, "given_tools", None) or getattr(item.agent, "tools", None) or ()
    return next((tool for tool in tools if getattr(tool, "name", None) == item.name), None)


def _named_call(item: Any) -> PendingCall:
    """Return a call. An MCP tool has its full names only: the server chose the short one."""
    call = pending_call(item)
    server = getattr(getattr(item, "tool_origin", None), "mcp_server_name", None)
    if server is None:
        return call
    own = call.tool.removeprefix(f"{SHOWN_PREFIX}{server}__")
    whole = f"{SERVER_PREFIX}{server}"
    return attrs.evolve(call, tool=f"{whole}__{own}", names=(f"{whole}__{own}", whole, f"{whole}__*"))
