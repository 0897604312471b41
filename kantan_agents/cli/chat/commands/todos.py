"""``/todos``."""

from __future__ import annotations

from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.chat.steps import show_steps, steps_of


async def _todos(chat: Chat, words: str) -> None:
    del words
    show_steps(steps_of(chat.talk.conversation.kept) or (), chat.screen)


TODOS: Final = ChatCommand("/todos", "Show the list of steps that the agent keeps.", _todos)
