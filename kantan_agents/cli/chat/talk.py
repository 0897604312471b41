"""Runs an agent in a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import attrs

from kantan_agents.agent import Agent
from kantan_agents.agent.stages.trim_history import output_text
from kantan_agents.cli.chat.answer_runner import AnswerRunner
from kantan_agents.cli.chat.chat_hooks import ChatHooks
from kantan_agents.cli.chat.compact import record_of, summarizer, summary_items
from kantan_agents.cli.chat.conversation import Conversation
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.kept_conversation import ChatTurn, Item, KeptConversation, Kind, Outcome
from kantan_agents.cli.chat.mentions import ChatMessage
from kantan_agents.cli.chat.progress import FAILED, INTERRUPTED, AnswerProgress
from kantan_agents.cli.chat.retry import last_turn
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.console import LABEL, NOTICE
from kantan_agents.errors import ChatCommandError


@attrs.define(eq=False)
class Talk:
    """A conversation and its agent; ``counted``: the last request's model and counted tokens."""

    agent: Agent[Any]
    conversation: Conversation
    _runner: AnswerRunner
    _hooks: ChatHooks
    _screen: Screen
    _noting: Callable[[tuple[str, int]], AbstractAsyncContextManager[None]]
    """Notes the tools' changes in a block, by conversation id and turn number."""
    _with_news: Callable[[ChatMessage], ChatMessage]
    trace_id: str | None = attrs.field(default=None, init=False)
    counted: tuple[str, int] | None = attrs.field(default=None, init=False)
    _unkept: tuple[str, Callable[[], Awaitable[Outcome]]] | None = attrs.field(default=None, init=False)
    """The last input and a function that resends it, if nothing was stored."""

    def renew(self) -> None:
        """Start a new conversation."""
        self.resume(Conversations.begin(self.agent.name))

    def resume(self, kept: KeptConversation) -> None:
        """Resume a stored conversation."""
        self.conversation.start(kept, self.agent)
        self.counted = self._unkept = None
        self.forget_approvals()

    def change_agent(self, agent: Agent[Any]) -> None:
        """Continue with another agent."""
        self.agent = agent
        self.conversation.make_portable()

    def forget_approvals(self) -> None:
        """Revoke the approvals: the agents have changed."""
        self._runner.forget_approvals()

    async def say(self, message: ChatMessage, text: str) -> Outcome:
        """Send a message, and store even a failed run's parts."""
        submitted = await self._hooks.submit(message, text)
        if not isinstance(submitted, ChatMessage):
            self._unkept = text, partial(self.say, message, text)
            return submitted
        item = self._with_news(submitted).item
        return await self._turn(text, [item], [*self.conversation.items, item])

    async def command(self, line: str) -> Outcome:
        """Run a tool. A denied command is not stored."""
        message = ChatMessage({"role": "user", "content": line})
        submitted = await self._hooks.submit(message, line)
        if not isinstance(submitted, ChatMessage):
            self._unkept = line, partial(self.command, line)
            return submitted
        return await self._turn(line, [message.item], line, "command")  # without additions from hooks

    async def retry(self) -> Outcome:
        """Ask for the last answer again, after its tool calls. An empty one does not replace it."""
        if self._unkept is not None:
            typed, again = self._unkept
            self._screen.line(f"> {typed}", LABEL)
            return await again()
        last = last_turn(self.conversation.kept.turns, self.conversation.items)
        for note in last.notes():
            self._screen.line(note, LABEL)
        return await self._turn(last.question, last.begun, [*last.before, *last.begun], "retry")

    async def compact(self) -> None:
        """Replace the conversation by a summary, unless the run fails."""
        conversation = self.conversation
        if not conversation.items:
            raise ChatCommandError(command="/compact", reason="nothing has been said yet")
        progress = AnswerProgress()
        record = record_of(conversation.items)
        result = await self._runner.run(summarizer(self.agent), record, {}, conversation.kept, progress)
        summary = "" if result is None else output_text(result).strip()
        if not summary:
            self._screen.line("The conversation is as it was.", NOTICE)
            return
        items = tuple(summary_items(summary))
        turn = ChatTurn(
            conversation.next, "summary", "/compact", summary, items, "finished", progress.trace_id
        )
        await conversation.add(turn)
        conversation.go_on_after((), turn)
        self.counted = None

    async def _turn(
        self, text: str, begun: list[Item], given: str | list[Item], kind: Kind = "turn"
    ) -> Outcome:
        conversation, progress = self.conversation, AnswerProgress()
        turn = ChatTurn(conversation.next, kind, text, items=tuple(begun))
        await conversation.add(turn)
        outcome: Outcome = "failed"
        items, answer = begun, ""
        try:
            async with self._noting((conversation.kept.id, turn.number)):
                keep = partial(self._keep_unfinished, turn, progress)
                result = await self._runner.run(
                    self.agent, given, conversation.context, conversation.kept, progress, keep
                )
            outcome = "interrupted" if result is None else "finished"
            if result is not None:
                items = _new_items(result, given, begun) or [*begun, *progress.items()]
                self._show_silent(result, progress)
                silent = "" if progress.ends_with_text else output_text(result)
                answer = "\n".join(filter(None, (progress.text, silent)))
        finally:
            self.trace_id = progress.trace_id or self.trace_id
            self.counted = progress.counted or self.counted
            with anyio.CancelScope(shield=True):
                if outcome != "finished" and kind != "turn" and progress.did_nothing:
                    await conversation.remove(turn)
                    if kind == "command" and progress.asked_model:
                        self._unkept = text, partial(self.command, text)
                else:
                    self._unkept = None
                    if outcome != "finished":
                        ending = INTERRUPTED if outcome == "interrupted" else FAILED
                        items, answer = [*begun, *progress.items(ending)], progress.text
                    done = attrs.evolve(
                        turn, answer=answer, items=tuple(items), outcome=outcome, trace_id=progress.trace_id
                    )
                    before = conversation.items if isinstance(given, str) else given[: -len(begun)]
                    conversation.go_on_after(before, done)
                    await conversation.change(done)
                    if outcome != "finished":  # the run has reverted its list, which the model still knows
                        conversation.restore_steps(self.agent)
        if outcome == "finished" and kind != "command":
            await self._hooks.stop(answer)
        return outcome

    def _show_silent(self, result: Any, progress: AnswerProgress) -> None:
        # A command, and an answer of a middleware, stream no text.
        if not progress.ends_with_text:
            self._screen.stream(output_text(result))
            self._screen.end_answer()

    async def _keep_unfinished(self, turn: ChatTurn, progress: AnswerProgress) -> None:
        """Store the tools' effects before the next model call, in case of a crash."""
        items = (*turn.items, *progress.items())
        await self.conversation.change(
            attrs.evolve(turn, answer=progress.text, items=items, trace_id=progress.trace_id)
        )


def _new_items(result: Any, given: str | list[Item], begun: list[Item]) -> list[Item]:
    items: list[Item] = result.to_input_list()
    if isinstance(given, str):
        return items
    return items[len(given) - len(begun) :] if items[: len(given)] == given else []
