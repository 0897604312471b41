"""``Talk``: one conversation with an agent: asks it, keeps each turn, and goes on after an interruption."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import attrs
from agents import RunConfig

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation.approvals import answer_approvals
from kantan_agents.agent.stages.trim_history import output_text
from kantan_agents.cli.chat.activity import ticking
from kantan_agents.cli.chat.answer_view import AnswerView
from kantan_agents.cli.chat.chat_hooks import ChatHooks
from kantan_agents.cli.chat.compact import record_of, summarizer, summary_items
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.ending import ChatEnding
from kantan_agents.cli.chat.kept_conversation import ChatTurn, Item, KeptConversation, Kind, Outcome, said
from kantan_agents.cli.chat.mentions import ChatMessage
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.progress import FAILED, INTERRUPTED, AnswerProgress, portable
from kantan_agents.cli.chat.retry import last_turn
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.steps import StepLists, give_steps, steps_of
from kantan_agents.cli.terminal.agent_options import AgentRunOptions
from kantan_agents.cli.terminal.approvals import Ask, AskedApprovals
from kantan_agents.cli.terminal.console import LABEL, NOTICE
from kantan_agents.core.interception import inherited_layers
from kantan_agents.errors import ChatCommandError, ConversationsFileError, KantanAgentsError, StreamUsageError


class Talk:
    """A conversation, and the agent it is with.

    Args:
        agent: The agent.
        context: The context that each conversation begins with.
        screen: Where answers are shown.
        ending: The signals.
        ask: Asks about a call that needs an approval.
        approved: Names of tools whose calls need no approval.
        store: Where turns are kept; None to keep none.
        hooks: The person's hooks.
        plan: The plan mode.

    Attributes:
        counted: The model of the last request of the conversation, and the tokens that its provider counted.
        options: How the agent is run.
        noting: Returns a block for what the tools of a turn do, by its conversation and its number.
        with_news: Adds to a message that is sent what the model does not know yet.
    """

    def __init__(
        self,
        agent: Agent[Any],
        context: dict[str, Any],
        screen: Screen,
        ending: ChatEnding,
        ask: Ask,
        approved: frozenset[str],
        store: Conversations | None,
        hooks: ChatHooks,
        plan: PlanMode,
    ) -> None:
        self.agent = agent
        self.trace_id: str | None = None
        self.options = AgentRunOptions()
        self.counted: tuple[str, int] | None = None
        self._screen = screen
        self._ending = ending
        self._store = store
        self._hooks = hooks
        self._stop: Callable[[], None] = _nothing
        self.plan = plan
        self._approvals = AskedApprovals(ask, self.stop, approved, plan.decide)
        self.noting: Callable[[tuple[str, int]], AbstractAsyncContextManager[None]] = lambda _: nullcontext()
        self.with_news: Callable[[ChatMessage], ChatMessage] = lambda message: message
        self._beginning = context
        self._begin(KeptConversation("", agent.name))
        self.renew()

    def _begin(self, kept: KeptConversation) -> None:
        self.kept = kept
        self._items: list[Item] = portable(kept.items())
        self.counted = None
        # What was typed last, if nothing of it is kept, and what sends it again.
        self._unkept: tuple[str, Callable[[], Awaitable[Outcome]]] | None = None
        self.context: dict[str, Any] = copy.deepcopy(self._beginning)
        give_steps(kept, self.agent, self.context)
        self.forget_approvals()

    def renew(self) -> None:
        """Begin a new conversation."""
        self._begin(Conversations.begin(self.agent.name))

    def resume(self, kept: KeptConversation) -> None:
        """Go on with a conversation that was kept."""
        self._begin(kept)

    def change_agent(self, agent: Agent[Any]) -> None:
        """Go on with another agent, such as the same one with another model."""
        self.agent = agent
        # The ids of items, and what a model has reasoned, mean nothing to another one.
        self._items = portable(self._items)

    def forget_approvals(self) -> None:
        """Ask again about calls that were approved for the conversation: its agents have changed."""
        self._approvals.forget()
        self.plan.forget()

    async def say(self, message: ChatMessage, text: str) -> Outcome:
        """Send a message, show the answer, and keep both.

        Args:
            message: The message.
            text: What was typed.

        Raises:
            Exception: The error of the run, after what has happened of the answer was kept.
        """
        submitted = await self._hooks.submit(message, text)
        if not isinstance(submitted, ChatMessage):
            self._unkept = text, partial(self.say, message, text)
            return submitted
        item = self.with_news(submitted).item
        return await self._turn(text, [item], [*self._items, item])

    async def command(self, line: str) -> Outcome:
        """Run one of the agent's tools with a command such as ``/read notes.txt``.

        Raises:
            Exception: As for ``say``. A command that is refused before its tool runs is not kept.
        """
        message = ChatMessage({"role": "user", "content": line})
        submitted = await self._hooks.submit(message, line)
        if not isinstance(submitted, ChatMessage):
            self._unkept = line, partial(self.command, line)
            return submitted
        return await self._turn(line, [message.item], line, "command")  # without what hooks add

    async def retry(self) -> Outcome:
        """Try the last answer again, after what its tools have done, with the files that were sent then.

        The new answer takes the place of the old one, unless nothing comes of it.

        Raises:
            ChatCommandError: E196, there is no answer to try again.
            Exception: As for ``say``.
        """
        if self._unkept is not None:
            typed, again = self._unkept
            self._screen.line(f"> {typed}", LABEL)
            return await again()
        last = last_turn(self.kept.turns, self._items)
        for note in last.notes():
            self._screen.line(note, LABEL)
        return await self._turn(last.question, last.begun, [*last.before, *last.begun], "retry")

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation, as the model gets it."""
        return tuple(self._items)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been said yet."""
        return not self._items

    async def compact(self) -> None:
        """Replace the conversation by a summary of it, which is shown.

        Raises:
            ChatCommandError: E196, there is nothing to summarise.
            Exception: The error of the run; the conversation is as it was.
        """
        if not self._items:
            raise ChatCommandError(command="/compact", reason="nothing has been said yet")
        progress = AnswerProgress()
        result = await self._run(summarizer(self.agent), record_of(self._items), {}, progress)
        summary = "" if result is None else output_text(result).strip()
        if not summary:
            self._screen.line("The conversation is as it was.", NOTICE)
            return
        items = summary_items(summary)
        turn = ChatTurn(
            self._next, "summary", "/compact", summary, tuple(items), "finished", progress.trace_id
        )
        await self._keep(Conversations.add, turn)
        self._items = items
        self.counted = None

    async def note(self, typed: str, text: str) -> None:
        """Let the model know, with the next message, what the person has done.

        Args:
            typed: What was typed.
            text: What the model gets.
        """
        item = said(text)
        await self._keep(Conversations.add, ChatTurn(self._next, "note", typed, "", (item,), "finished"))
        self._items.append(item)

    def stop(self) -> None:
        """End the answer that is being made."""
        self._stop()

    @property
    def _next(self) -> int:
        return len(self.kept.turns) + 1

    async def _turn(
        self, text: str, begun: list[Item], given: str | list[Item], kind: Kind = "turn"
    ) -> Outcome:
        progress = AnswerProgress()
        turn = ChatTurn(self._next, kind, text, items=tuple(begun))
        await self._keep(Conversations.add, turn)
        outcome: Outcome = "failed"
        items, answer = begun, ""
        try:
            async with self.noting((self.kept.id, turn.number)):
                result = await self._run(self.agent, given, self.context, progress, turn)
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
                    await self._keep(Conversations.remove, turn)
                    if kind == "command" and progress.asked_model:
                        self._unkept = text, partial(self.command, text)
                else:
                    self._unkept = None
                    if outcome != "finished":
                        ending = INTERRUPTED if outcome == "interrupted" else FAILED
                        items, answer = [*begun, *progress.items(ending)], progress.text
                    before = self._items if isinstance(given, str) else given[: -len(begun)]
                    self._items = [*before, *items]
                    done = attrs.evolve(turn, answer=answer, items=tuple(items), outcome=outcome)
                    await self._keep(Conversations.change, attrs.evolve(done, trace_id=progress.trace_id))
                    if outcome != "finished":  # the run has undone its list, which the model still knows
                        give_steps(self.kept, self.agent, self.context)
        if outcome == "finished" and kind != "command":
            await self._hooks.stop(answer)
        return outcome

    async def _run(
        self,
        agent: Agent[Any],
        given: Any,
        context: dict[str, Any],
        progress: AnswerProgress,
        turn: ChatTurn | None = None,
    ) -> Any:
        """Run an agent until no call waits for an approval; return None if the person has ended it."""
        view = AnswerView(
            self._screen, partial(_rule_of, agent, context), StepLists(steps_of(self.kept) or ())
        )
        turns = self.options.turns_of(agent)
        token = answer_approvals.set(self._approvals.decide_inside)
        # A summary has no tools, and needs no plan.
        outer = inherited_layers.get()
        around = inherited_layers.set(outer if turn is None else self.plan.layers.inside(outer))
        try:
            while True:
                config = RunConfig(group_id=self.kept.id)
                async with (
                    ticking(self._screen, view.show_status),
                    agent.stream(given, context, run_config=config, **turns) as run,
                ):
                    self._stop = run.cancel
                    try:
                        with self._ending.interrupting(run.cancel):
                            async for event in run:
                                async with self._screen.lock:
                                    view.show(event, run.id)
                                if event.run_id == run.id and progress.see(event) and turn is not None:
                                    await self._keep_unfinished(turn, progress)
                    finally:
                        self._screen.end_answer()
                    try:
                        result = run.context["result"]
                    except StreamUsageError:  # it was cancelled
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

    def _show_silent(self, result: Any, progress: AnswerProgress) -> None:
        # A command, and an answer that a middleware gives, stream no text.
        if not progress.ends_with_text:
            self._screen.stream(output_text(result))
            self._screen.end_answer()

    async def _keep_unfinished(self, turn: ChatTurn, progress: AnswerProgress) -> None:
        """Keep what tools have done before the next model call: a crash must not hide it."""
        items = (*turn.items, *progress.items())
        unfinished = attrs.evolve(turn, answer=progress.text, items=items, trace_id=progress.trace_id)
        await self._keep(Conversations.change, unfinished)

    async def _keep(
        self, how: Callable[[Conversations, KeptConversation, ChatTurn], KeptConversation], turn: ChatTurn
    ) -> None:
        before = self.kept
        if self._store is not None:
            try:
                self.kept = await anyio.to_thread.run_sync(partial(how, self._store, before, turn))
            except ConversationsFileError as error:
                self._store = None
                self._screen.block(f"warning: {error}. From here on, nothing is kept", NOTICE)
        if self._store is None:
            own = () if how is Conversations.remove else (turn,)
            self.kept = attrs.evolve(before, turns=(*before.turns[: turn.number - 1], *own))
        if self.kept.id != before.id:
            note = f"Another chat has gone on with {before.id}; this one is now {self.kept.id}."
            self._screen.line(note, NOTICE)


def _nothing() -> None:
    pass


def _new_items(result: Any, given: str | list[Item], begun: list[Item]) -> list[Item]:
    """Return what a run has added to the conversation; empty if it has changed what came before."""
    items: list[Item] = result.to_input_list()
    if isinstance(given, str):
        return items
    return items[len(given) - len(begun) :] if items[: len(given)] == given else []


def _rule_of(agent: Agent[Any], context: dict[str, Any], tool: str, arguments: str) -> str | None:
    try:
        explanation = agent.explain_tool(tool, arguments or None, context)
    except KantanAgentsError:  # the rules themselves are wrong, which the refusal says
        return None
    if explanation.allowed:
        return None  # another agent has refused it, after a hand-off
    return f"{explanation.rule}, in {explanation.layer}" if explanation.layer else explanation.rule
