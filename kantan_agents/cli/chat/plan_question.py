"""Asks for agreement to a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal

import anyio
import attrs

from kantan_agents.cli.chat.answer_view import short_name
from kantan_agents.cli.chat.editor import Editor
from kantan_agents.cli.chat.plan_entries import PlanEntry
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.console import BAD, LABEL, NOTICE
from kantan_agents.cli.terminal.file_diff import visible
from kantan_agents.cli.terminal.plain import one_line

_QUESTION: Final = "[y]es, yes but ask [e]ach time, [n]o: "
_SHORT_QUESTION: Final = "[y]es, [n]o: "
_REASON: Final = "Why not? "
_ALWAYS_ASKED: Final = "Everything else is asked about as usual, and protected files each time."


@attrs.frozen
class PlanAnswer:
    """The decision; ``"each"`` agrees to none of the permissions."""

    decision: Literal["yes", "each", "no"]
    reason: str = ""


@attrs.frozen(eq=False)
class PlanQuestion:
    """Asks at the terminal. Ctrl-C or Ctrl-D cancels the model's answer."""

    editor: Editor
    screen: Screen
    stop: Callable[[], None]
    place: str = ""

    async def __call__(self, agent: str, plan: str, entries: tuple[PlanEntry, ...]) -> PlanAnswer:
        """Ask about an agent's plan."""
        async with self.screen.lock:
            self.screen.line(f"{short_name(agent)} proposes a plan:", NOTICE)
            # The prefix keeps a line from imitating one of the chat.
            self.screen.block("\n".join(f"| {line}" for line in visible(plan).split("\n")))
            if entries:
                self.screen.block("In this conversation, it wants to do this without a question:", NOTICE)
            for text, style in self._lines(entries):
                self.screen.block(text, style)
            self.screen.block(_ALWAYS_ASKED, LABEL)
            try:
                return await self._answer(_QUESTION if entries else _SHORT_QUESTION)
            except (KeyboardInterrupt, EOFError):
                self.stop()
        await anyio.sleep_forever()  # until the run is canceled
        raise AssertionError

    def _lines(self, entries: tuple[PlanEntry, ...]) -> Iterator[tuple[str, str]]:
        for entry in entries:
            place = f" ({self.place})" if self.place and entry.text.startswith("Bash(") else ""
            yield f"  {entry.text}{place}: {entry.words}", ""
            yield from ((f"    {remark}", BAD) for remark in entry.remarks)

    async def _answer(self, question: str) -> PlanAnswer:
        while True:
            match (await self.editor.ask(question)).strip().lower():
                case "y" | "yes":
                    return PlanAnswer("yes")
                case "e" | "each" if question == _QUESTION:
                    return PlanAnswer("each")
                case "n" | "no":
                    return PlanAnswer("no", one_line(await self.editor.ask(_REASON)))
            self.screen.line("Type a letter in brackets. y agrees to exactly what is shown.")
