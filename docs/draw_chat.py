"""Draws the session in docs/guides/chat.md: ``python docs/draw_chat.py``.

It leads a chat on a pseudo-terminal against an ``OfflineServer``, as a person would, and draws what the terminal
shows. Durations are replaced by a fixed one, so that drawing it again changes nothing.
``tests/docs/test_draw_chat.py`` tests that.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from terminal_svg import svg_of  # noqa: E402

from kantan_agents.testing import OfflineServer, ScriptedToolCall  # noqa: E402
from tests.cli.chat.terminal import Terminal  # noqa: E402

PICTURE = ROOT / "docs" / "assets" / "chat-session.svg"
COMMAND = "kantan-agents chat --plan --tools . --write"
COLUMNS, LINES = 84, 58
_MODEL = "gpt-6.1-terra"
_BEFORE = "STANDARD = 0.19\n"
_STEPS = ("Add BOOKS to vat.py", "Look over the result")
_COLORS = {"brown": "yellow", "default": ""}


def _steps(*states: str) -> ScriptedToolCall:
    todos = [
        {"content": step, "status": state}
        for step, state in zip(_STEPS, states, strict=True)
    ]
    return ScriptedToolCall("TodoWrite", {"todos": todos})


SCRIPT: list[Any] = [
    ScriptedToolCall("Read", {"file_path": "vat.py"}),
    ScriptedToolCall(
        "ExitPlanMode",
        {
            "plan": "Add BOOKS = 0.07 to vat.py, below STANDARD.",
            "permissions": ["Edit(vat.py)"],
        },
    ),
    _steps("in_progress", "pending"),
    ScriptedToolCall(
        "Edit",
        {
            "file_path": "vat.py",
            "old_string": _BEFORE,
            "new_string": f"{_BEFORE}BOOKS = 0.07\n",
        },
    ),
    _steps("completed", "completed"),
    "Books are taxed at 7 % now: BOOKS in vat.py.",
]
"""What the model does."""


class _NewProcess:
    """Starts the program in a new process, as ``Terminal`` asks for it."""

    def popen(
        self, command: Sequence[str | Path], **options: Any
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.DEVNULL, **options
        )


def picture() -> str:
    """Return the picture as SVG."""
    with tempfile.TemporaryDirectory() as home, OfflineServer(SCRIPT) as server:
        folder = Path(home, "shop")
        folder.mkdir()
        (folder / "vat.py").write_text(_BEFORE)
        env = {
            **{
                name: os.environ[name]
                for name in ("PATH", "PYTHONPATH")
                if name in os.environ
            },
            **server.environment(),
            "HOME": home,
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        starter: Any = _NewProcess()
        options = [
            "chat",
            "--model",
            _MODEL,
            "--no-record",
            "--plan",
            *COMMAND.split()[2:],
        ]
        with Terminal(
            starter, *options, env=env, cwd=folder, columns=COLUMNS, lines=LINES
        ) as terminal:
            for waits_for, typed in (
                ("plan>", "Books have 7 % VAT. Add that."),
                ("ask [e]ach time", "y"),
                ("BOOKS in vat.py.", "/undo"),
                ("Put back?", "y"),
            ):
                terminal.wait_for(waits_for)
                terminal.enter(typed)
            terminal.wait_for("1 file put back.")
            terminal.wait_for_prompt()
            shown = shown_on(terminal)
    return svg_of(shown, title=COMMAND, columns=COLUMNS)


def shown_on(terminal: Terminal) -> Text:
    """Return what a terminal shows with its colors, without the empty lines below."""
    screen = terminal._screen
    lines = []
    for number in range(screen.cursor.y):
        line = Text()
        for column in range(screen.columns):
            char = screen.buffer[number][column]
            style = " ".join(
                filter(
                    None, ("bold" if char.bold else "", _COLORS.get(char.fg, char.fg))
                )
            )
            line.append(char.data, style)
        line.rstrip()
        lines.append(normalised(line))
    return Text("\n").join(lines)


def normalised(line: Text) -> Text:
    """Return a line in which each duration is 2 ms; one that was cut is cut where no duration matters."""
    for found in reversed(list(re.finditer(r"\d+(\.\d+)? m?s\b", line.plain))):
        before, _, after = line.divide(found.span())
        line = Text.assemble(before, "2 ms", after)
    return (
        Text.assemble(line[: COLUMNS - 10], "...") if line.plain.endswith("…") else line
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE)
