"""``AskedApprovals``: asks the person at the terminal about the tool calls that wait for an approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal

import anyio
import attrs
from agents import RunState

from kantan_agents.middleware.approve.calls import PendingCall, Rejected
from kantan_agents.middleware.approve.waiting_runs import pending_call
from kantan_agents.tool_rules.origins import SERVER_PREFIX, SHOWN_PREFIX

REFUSED = "The user did not approve this call."


@attrs.frozen
class ApprovalAnswer:
    """What a person has decided about a call.

    Attributes:
        decision: Whether it is made; ``"always"`` approves later calls of this tool as well.
        reason: Why it was refused.
    """

    decision: Literal["yes", "no", "always"]
    reason: str = ""


Ask = Callable[[PendingCall], Awaitable[ApprovalAnswer | None]]
"""Asks about a call; returns None if the person has ended the answer instead."""


class AskedApprovals:
    """Decides on waiting calls, one after another.

    Args:
        ask: Asks the person.
        stop: Ends the answer that is being made.
        approved: Names of tools whose calls need no question.
    """

    def __init__(self, ask: Ask, stop: Callable[[], None], approved: Collection[str] = ()) -> None:
        self._ask = ask
        self._stop = stop
        self._approved = frozenset(approved)
        self._always: set[tuple[str, str]] = set()
        self.was_stopped = False

    def forget(self) -> None:
        """Forget which tools were approved for the conversation."""
        self._always.clear()

    async def decide(self, result: Any) -> RunState[Any, Any] | None:
        """Return the state of a paused run with a decision for each call; None if none waits.

        If the person ends the answer instead, no call is decided: None is returned, and ``was_stopped`` is
        set.
        """
        self.was_stopped = False
        if not getattr(result, "interruptions", None):
            return None
        state: RunState[Any, Any] = result.to_state()
        for item in state.get_interruptions():
            answer = await self._answer(_named_call(item))
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
        """Do the same for a run inside of the one that is being made, which ends with it."""
        state = await self.decide(result)
        if self.was_stopped:
            self._stop()
            await anyio.sleep_forever()  # until the run is cancelled
        return state

    async def _answer(self, call: PendingCall) -> ApprovalAnswer | None:
        # The name alone is not enough: another agent may have another tool of this name.
        key = (call.agent, call.tool)
        if not self._approved.isdisjoint(call.names) or key in self._always:
            return ApprovalAnswer("yes")
        answer = await self._ask(call)
        if answer is not None and answer.decision == "always":
            self._always.add(key)
        return answer


def _named_call(item: Any) -> PendingCall:
    """Return a waiting call. One of an MCP server has its full names only: the server chose the other."""
    call = pending_call(item)
    server = getattr(getattr(item, "tool_origin", None), "mcp_server_name", None)
    if server is None:
        return call
    own = call.tool.removeprefix(f"{SHOWN_PREFIX}{server}__")
    whole = f"{SERVER_PREFIX}{server}"
    return attrs.evolve(call, tool=f"{whole}__{own}", names=(f"{whole}__{own}", whole, f"{whole}__*"))
