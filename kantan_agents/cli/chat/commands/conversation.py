"""``/new``, ``/resume``, ``/search`` and ``/compact``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.terminal.console import LABEL
from kantan_agents.cli.terminal.show_quantities import counted, short_time
from kantan_agents.errors import ChatCommandError

if TYPE_CHECKING:
    from kantan_agents.cli.chat.conversations import Conversations
    from kantan_agents.cli.chat.kept_conversation import ListedConversation

_LISTED: Final = 20


async def _new(chat: Chat, words: str) -> None:
    del words
    await chat.jobs.end()
    chat.talk.renew()
    chat.screen.line("A new conversation.", LABEL)


async def _resume(chat: Chat, wanted: str) -> None:
    store = _kept(chat, "/resume")
    if wanted:
        kept = await anyio.to_thread.run_sync(store.load, wanted)
        await chat.jobs.end()
        chat.go_on_with(kept)
    else:
        listed = await anyio.to_thread.run_sync(store.newest, _LISTED)
        _list(chat, listed, "No conversation is kept yet.")


async def _search(chat: Chat, words: str) -> None:
    if not words:
        raise ChatCommandError(command="/search", reason="name a word: /search WORD")
    store = _kept(chat, "/search")
    found = await anyio.to_thread.run_sync(store.search, words, _LISTED)
    _list(chat, found, f"{words!r} was said in no conversation that is kept.")


async def _compact(chat: Chat, words: str) -> None:
    del words
    await chat.talk.compact()


def _recent(chat: Chat) -> Mapping[str, str]:
    return chat.recent


NEW: Final = ChatCommand("/new", "Begin a new conversation.", _new)
RESUME: Final = ChatCommand(
    "/resume [ID]", "List the conversations that are kept, or go on with one.", _resume, _recent
)
SEARCH: Final = ChatCommand("/search WORD", "Find the conversations in which a text was said.", _search)
COMPACT: Final = ChatCommand(
    "/compact", "Replace the conversation by a summary that the model writes.", _compact
)


def _kept(chat: Chat, command: str) -> Conversations:
    if chat.store is None:
        raise ChatCommandError(command=command, reason="this chat was started with --no-save")
    return chat.store


def _list(chat: Chat, listed: list[ListedConversation], if_none: str) -> None:
    if not listed:
        chat.screen.line(if_none)
    for one in listed:
        when = short_time(datetime.fromtimestamp(one.changed_at, timezone.utc))
        chat.screen.line(f"{one.id}  {when}  {counted(one.turns, 'turn')}  {one.found or one.title}")
