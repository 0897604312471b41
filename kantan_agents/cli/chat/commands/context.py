"""``/context``: the content of the context window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import count_text

if TYPE_CHECKING:
    from kantan_agents.cli.chat.context_parts import ContextPart

_LARGEST: Final = 5
_LONGEST: Final = 60
_LONGEST_KIND: Final = 40


async def _context(chat: Chat, words: str) -> None:
    del words
    # Imported here: only chats that use the command pay for it.
    from kantan_agents.cli.chat.context_parts import parts_before, parts_of

    talk = chat.talk
    pinned = chat.source.pinned
    files = None if pinned is None else pinned.instruction_files
    sections = {} if files is None else {str(one.path): one.section for one in files.used}
    offered = filter(None, [chat.plan.offered])
    before = await parts_before(talk.agent, talk.conversation.context, sections, offered)
    said = await anyio.to_thread.run_sync(lambda: list(parts_of(talk.conversation.items)))
    lines = [*_table([*before, *said]), ""]
    if talk.counted is None:
        lines.append("No provider has counted a request of this conversation yet.")
    else:
        model, tokens = talk.counted
        lines.append(f"{one_line(model)} has counted {count_text(tokens)} tokens for the last request.")
    lines += [f"{limit!r} shortens longer requests." for limit in _limits(talk.agent)]
    chat.screen.block("\n".join(lines))


CONTEXT: Final = ChatCommand("/context", "Show what fills the context window.", _context)


def _table(parts: Sequence[ContextPart]) -> Iterator[str]:
    total = sum(part.tokens for part in parts)
    kinds: dict[str, int] = {}
    for part in parts:
        kind = _cut(part.kind, _LONGEST_KIND)
        kinds[kind] = kinds.get(kind, 0) + part.tokens
    width = max(map(len, kinds))
    digits = len(count_text(total))
    yield f"The next request has about {count_text(total)} tokens and your message:"
    for kind, tokens in kinds.items():
        share = tokens / total if total else 0
        yield f"  {kind:<{width}}  about {count_text(tokens):>{digits}}  {share:>4.0%}"
    yield "The largest:"
    for part in sorted(parts, key=lambda one: -one.tokens)[:_LARGEST]:
        yield f"  about {count_text(part.tokens):>{digits}}  {_cut(f'{part.kind}: {part.origin}', _LONGEST)}"


def _cut(text: str, most: int) -> str:
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def _limits(agent: Any) -> Iterator[Any]:
    from kantan_agents.middleware import CompactHistory

    return (one for one in agent.layers.middleware if isinstance(one, CompactHistory))
