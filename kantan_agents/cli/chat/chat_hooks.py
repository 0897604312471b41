"""The hooks of a chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from kantan_agents.cli.chat.ending import ChatEnding
from kantan_agents.cli.chat.kept_conversation import Outcome
from kantan_agents.cli.chat.mentions import ChatMessage
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.hooks.hooks import Hooks
from kantan_agents.cli.terminal.approvals import ApprovalAnswer, Ask, AskedCall
from kantan_agents.cli.terminal.console import BAD, NOTICE
from kantan_agents.cli.terminal.file_diff import visible
from kantan_agents.cli.terminal.plain import whole

T = TypeVar("T")


class ChatHooks:
    """Runs hooks for a chat."""

    def __init__(self, hooks: Hooks, screen: Screen, ending: ChatEnding) -> None:
        self._hooks = hooks
        self._screen = screen
        self._ending = ending
        self._lock = anyio.Lock()
        hooks.warn = self._warn

    def lead(self, session: Callable[[], str]) -> None:
        """Apply to every run in the current task."""
        self._hooks.session = session
        self._hooks.guard_runs()

    def before(self, ask: Ask) -> Ask:
        """Run hooks before ``ask``; they may deny a call."""

        async def ask_after_hooks(asked: AskedCall) -> ApprovalAnswer | None:
            refusal = await self._interruptible(lambda: self._hooks.ask_early(asked.call))
            if not refusal:
                return None if refusal is None else await ask(asked)
            await self._show(f"! {asked.call.tool} refused: {refusal}", BAD)
            return ApprovalAnswer("no", refusal)

        return ask_after_hooks

    async def submit(self, message: ChatMessage, text: str) -> ChatMessage | Outcome:
        """Return the extended message, or the outcome if blocked."""
        submitted = await self._interruptible(lambda: self._hooks.submit(text))
        if submitted is None:
            return "interrupted"
        objections, added = submitted
        if objections:
            await self._show(f"not sent: {objections}", BAD)
            return "failed"
        return message.with_text(whole(added)) if added else message

    async def stop(self, answer: str) -> None:
        """Run the hooks for the end of an answer."""
        await self._interruptible(lambda: self._hooks.stop(answer))

    async def _interruptible(self, function: Callable[[], Awaitable[T]]) -> T | None:
        async with self._lock:  # subagents may ask concurrently
            with anyio.CancelScope() as scope, self._ending.interrupting(scope.cancel):
                return await function()
        return None

    async def _warn(self, text: str) -> None:
        await self._show(f"warning: {text}", NOTICE)

    async def _show(self, text: str, style: str) -> None:
        async with self._screen.lock:
            self._screen.block(visible(text), style)
