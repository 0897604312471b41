"""The current conversation, with each turn stored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import anyio.to_thread
import attrs

from kantan_agents.agent import Agent
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.kept_conversation import ChatTurn, Item, KeptConversation, said
from kantan_agents.cli.chat.progress import portable
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.steps import give_steps
from kantan_agents.cli.terminal.console import NOTICE
from kantan_agents.errors import ConversationsFileError


class Conversation:
    """A new conversation, until ``start`` loads another; ``items`` is the model's input."""

    def __init__(
        self, agent: Agent[Any], context: dict[str, Any], store: Conversations | None, screen: Screen
    ) -> None:
        self._first_context = context
        self._store = store
        self._screen = screen
        self.start(Conversations.begin(agent.name), agent)

    def start(self, kept: KeptConversation, agent: Agent[Any]) -> None:
        """Continue a conversation, or start a new one."""
        self.kept = kept
        self.items: list[Item] = portable(kept.items())
        self.context: dict[str, Any] = copy.deepcopy(self._first_context)
        self.restore_steps(agent)

    def restore_steps(self, agent: Agent[Any]) -> None:
        """Restore the todo list that the model knows."""
        give_steps(self.kept, agent, self.context)

    def make_portable(self) -> None:
        """Remove ids and reasoning, which another model cannot use."""
        self.items = portable(self.items)

    @property
    def next(self) -> int:
        """The number of the next turn."""
        return len(self.kept.turns) + 1

    def go_on_after(self, before: Iterable[Item], turn: ChatTurn) -> None:
        """From now on, send these items."""
        self.items = [*before, *turn.items]

    async def note(self, typed: str, text: str) -> None:
        """Add a note to the next message."""
        turn = ChatTurn(self.next, "note", typed, "", (said(text),), "finished")
        await self.add(turn)
        self.go_on_after(self.items, turn)

    async def add(self, turn: ChatTurn) -> None:
        """Store a new turn."""
        await self._keep(Conversations.add, turn)

    async def change(self, turn: ChatTurn) -> None:
        """Update the latest turn."""
        await self._keep(Conversations.change, turn)

    async def remove(self, turn: ChatTurn) -> None:
        """Remove the latest turn, which had no effect."""
        await self._keep(Conversations.remove, turn)

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
